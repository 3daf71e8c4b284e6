-- Ends an owner: removes its field, or leaves the lock shut for the rest of its minimum hold, and tells the head of the queue.
-- KEYS: lock, tombstone, queue, deadlines
-- ARGV: owner:string, channel:string, publish:string, keepMs:integer, entombMs:integer, nowMs:integer
-- RETURNS 1: released
-- RETURNS 2: unannounced
-- RETURNS 0: gone
-- RETURNS -1: taken
-- INCLUDE: queue
-- INCLUDE: places
local lock, owner = KEYS[1], ARGV[1]
local keepMs = tonumber(ARGV[4])
-- What is left of a minimum hold stands under a name that no late renewal raises and no late copy of this call finds again.
local rest = owner .. ':0'
-- HDEL removes the key with its last field, and is a write that a full server allows.
local found = redis.call('hdel', lock, owner)
local news = found
if keepMs > 0 and found == 1 then
  redis.call('hset', lock, rest, 1)
  redis.call('pexpire', lock, ARGV[4])
elseif keepMs > 0 then
  found = redis.call('hexists', lock, rest)
elseif found == 0 then
  found = redis.call('hdel', lock, rest)
  news = found
end
if ARGV[5] ~= '0' then
  -- A full server allows DEL, and after a first write the script may go on to SET.
  redis.call('del', KEYS[2])
  redis.call('set', KEYS[2], '1', 'px', ARGV[5])
end
local taken = found == 0 and redis.call('exists', lock) == 1
-- Of a lock that expired nobody was told yet.
if news == 0 and (found == 1 or taken) then
  return taken and -1 or 1
end
local head = purge(KEYS[3], KEYS[4], tonumber(ARGV[6]))
local mute = head and tell(head, ARGV[2], ARGV[3])
if found == 0 then
  return 0
end
return mute and 2 or 1
