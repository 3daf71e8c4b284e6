-- Ends an owner: removes its field, or leaves the lock shut for the rest of its minimum hold. Nobody is told.
-- KEYS: lock, tombstone
-- ARGV: owner:string, keepMs:integer, entombMs:integer
-- RETURNS 1: released
-- RETURNS 0: gone
-- RETURNS -1: taken
local lock, owner = KEYS[1], ARGV[1]
local keepMs = tonumber(ARGV[2])
-- What is left of a minimum hold stands under a name that no late renewal raises and no late copy of this call finds again.
local rest = owner .. ':0'
-- HDEL removes the key with its last field, and is a write that a full server allows.
local found = redis.call('hdel', lock, owner)
if keepMs > 0 and found == 1 then
  redis.call('hset', lock, rest, 1)
  redis.call('pexpire', lock, ARGV[2])
elseif keepMs > 0 then
  found = redis.call('hexists', lock, rest)
elseif found == 0 then
  found = redis.call('hdel', lock, rest)
end
if ARGV[3] ~= '0' then
  -- A full server allows DEL, and after a first write the script may go on to SET.
  redis.call('del', KEYS[2])
  redis.call('set', KEYS[2], '1', 'px', ARGV[3])
end
if found == 0 then
  return redis.call('exists', lock) == 1 and -1 or 0
end
return 1
