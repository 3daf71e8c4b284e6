-- Compare and delete: ends the token's hold, or leaves it for the rest of its minimum hold, and tells one waiter.
-- KEYS: mutex, tombstone
-- ARGV: owner:string, channel:string, publish:string, keepMs:integer, entombMs:integer
-- RETURNS 1: released
-- RETURNS 2: unannounced
-- RETURNS 0: gone
-- RETURNS -1: taken
local mutex, keepMs = KEYS[1], tonumber(ARGV[4])
local holder = redis.call('get', mutex)
local ours = holder == ARGV[1]
if ours and keepMs > 0 then
  redis.call('pexpire', mutex, ARGV[4])
elseif ours then
  redis.call('del', mutex)
end
if ARGV[5] ~= '0' then
  -- A full server allows DEL, and after a first write the script may go on to SET.
  redis.call('del', KEYS[2])
  redis.call('set', KEYS[2], '1', 'px', ARGV[5])
end
if not ours then
  return holder and -1 or 0
end
if keepMs == 0 then
  local published = redis.pcall(ARGV[3], ARGV[2], '0')
  if type(published) == 'table' then
    return 2
  end
end
return 1
