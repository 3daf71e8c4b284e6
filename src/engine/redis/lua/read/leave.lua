-- Leaves one read hold of several: lowers the owner's count to what remains. The hash's TTL stays as it is.
-- KEYS: lock
-- ARGV: owner:string, count:integer
-- RETURNS 1: kept
-- RETURNS 0: gone
-- RETURNS -1: taken
-- INCLUDE: readers
local lock, owner = KEYS[1], ARGV[1]
local count = tonumber(ARGV[2])
local held = redis.call('hget', lock, owner)
if not held or redis.call('exists', holdKey(lock, owner, 1)) == 0 then
  return redis.call('exists', lock) == 1 and -1 or 0
end
if tonumber(held) > count then
  -- A full server allows DEL, and after a first write the script may go on to HSET.
  for i = tonumber(held), count + 1, -1 do
    redis.call('del', holdKey(lock, owner, i))
  end
  redis.call('hset', lock, owner, ARGV[2])
end
return 1
