-- Ends an owner: removes its field, or leaves it for the rest of its minimum hold, and tells one waiter.
-- KEYS: lock, tombstone
-- ARGV: owner:string, channel:string, publish:string, keepMs:integer, entombMs:integer
-- RETURNS 1: released
-- RETURNS 2: unannounced
-- RETURNS 0: gone
-- RETURNS -1: taken
local lock, owner = KEYS[1], ARGV[1]
local keepMs = tonumber(ARGV[4])
local found
if keepMs > 0 then
  found = redis.call('hexists', lock, owner)
  if found == 1 then
    redis.call('pexpire', lock, ARGV[4])
  end
else
  -- HDEL removes the key with its last field, and is a write that a full server allows.
  found = redis.call('hdel', lock, owner)
end
if ARGV[5] ~= '0' then
  -- A full server allows DEL, and after a first write the script may go on to SET.
  redis.call('del', KEYS[2])
  redis.call('set', KEYS[2], '1', 'px', ARGV[5])
end
if found == 0 then
  return redis.call('exists', lock) == 1 and -1 or 0
end
if keepMs == 0 then
  local published = redis.pcall(ARGV[3], ARGV[2], '0')
  if type(published) == 'table' then
    return 2
  end
end
return 1
