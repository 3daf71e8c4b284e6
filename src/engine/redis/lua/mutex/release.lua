-- Compare and delete: ends the token's hold, or leaves the mutex shut for the rest of its minimum hold, and tells one waiter.
-- KEYS: mutex, tombstone
-- ARGV: owner:string, channel:string, publish:string, keepMs:integer, entombMs:integer
-- RETURNS 1: released
-- RETURNS 2: unannounced
-- RETURNS 0: gone
-- RETURNS -1: taken
local mutex, keepMs = KEYS[1], tonumber(ARGV[4])
-- What is left of a minimum hold stands under a name that no late renewal raises and no late copy of this call finds again.
local rest = ARGV[1] .. ':0'
local holder = redis.call('get', mutex)
local ours = holder == ARGV[1] or holder == rest
local told = false
if holder == ARGV[1] and keepMs > 0 then
  -- A write that a full server allows; after it the script may go on to SET.
  redis.call('pexpire', mutex, ARGV[4])
  redis.call('set', mutex, rest, 'px', ARGV[4])
  told = true
elseif ours and keepMs == 0 then
  redis.call('del', mutex)
  told = true
end
if ARGV[5] ~= '0' then
  -- A full server allows DEL, and after a first write the script may go on to SET.
  redis.call('del', KEYS[2])
  redis.call('set', KEYS[2], '1', 'px', ARGV[5])
end
if not ours then
  return holder and -1 or 0
end
if told then
  local published = redis.pcall(ARGV[3], ARGV[2], '0')
  if type(published) == 'table' then
    return 2
  end
end
return 1
