-- Ends a reader: removes its field and its holds, or leaves what remains of its minimum hold. Tells a waiter when the
-- last reader leaves.
-- KEYS: lock, tombstone
-- ARGV: owner:string, channel:string, publish:string, keepMs:integer, entombMs:integer
-- RETURNS 1: released
-- RETURNS 2: unannounced
-- RETURNS 0: gone
-- RETURNS -1: taken
-- INCLUDE: readers
-- INCLUDE: settle
local lock, leaving = KEYS[1], ARGV[1]
local keepMs = tonumber(ARGV[4])
-- What is left of a minimum hold stands under a name that no late renewal raises and no late copy of this call finds again.
local rest = leaving .. ':0'
local told, found = false, false
local seen = redis.call('hmget', lock, 'mode', leaving)
local held = seen[2]
if not held and keepMs == 0 then
  leaving = rest
  held = redis.call('hget', lock, rest)
elseif not held then
  found = redis.call('hexists', lock, rest) == 1
end
if held then
  local own = longestHold(lock, leaving, held)
  found = own > 0
  dropReader(lock, leaving, held)
  if found and keepMs > 0 then
    redis.call('hset', lock, rest, '1')
    redis.call('set', holdKey(lock, rest, 1), '1', 'px', ARGV[4])
    if redis.call('pttl', lock) < keepMs then
      redis.call('pexpire', lock, ARGV[4])
    end
  end
  -- The hash of a writer lasts as long as the writer needs it.
  local free = seen[1] == 'read' and settle(lock, own)
  told = free or (found and keepMs > 0)
end
if ARGV[5] ~= '0' then
  -- A full server allows DEL, and after a first write the script may go on to SET.
  redis.call('del', KEYS[2])
  redis.call('set', KEYS[2], '1', 'px', ARGV[5])
end
local published = told and redis.pcall(ARGV[3], ARGV[2], '0')
if not found then
  return redis.call('exists', lock) == 1 and -1 or 0
end
if type(published) == 'table' then
  return 2
end
return 1
