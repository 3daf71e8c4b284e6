-- Leaves one hold of several: lowers the owner's count to what remains. The TTL stays as it is.
-- KEYS: lock
-- ARGV: owner:string, count:integer
-- RETURNS 1: kept
-- RETURNS 0: gone
-- RETURNS -1: taken
local lock, owner = KEYS[1], ARGV[1]
local held = redis.call('hget', lock, owner)
if not held then
  return redis.call('exists', lock) == 1 and -1 or 0
end
if tonumber(held) > tonumber(ARGV[2]) then
  -- A full server allows HDEL, and after a first write, even of nothing, the script may go on to HSET.
  redis.call('hdel', lock, '')
  redis.call('hset', lock, owner, ARGV[2])
end
return 1
