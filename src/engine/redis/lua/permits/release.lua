-- Ends an owner: takes those of its permits back that are still out, and tells the waiters.
-- KEYS: count, leases, tombstone
-- ARGV: channel:string, publish:string, entombMs:integer, ids:string...
-- RETURNS 1: released
-- RETURNS 2: unannounced
-- RETURNS 0: gone
-- RETURNS -3: foreign
-- INCLUDE: permits
-- INCLUDE: whole
-- INCLUDE: permit-count
-- INCLUDE: permit-ids
local count, leases = KEYS[1], KEYS[2]
local available = read(count)
if available == nil then
  return -3
end
local ids = rawIds(4)
-- ZREM is a write that a full server allows, and after it the script may go on.
local back = redis.call('zrem', leases, unpack(ids))
if ARGV[3] ~= '0' then
  redis.call('set', KEYS[3], '1', 'px', ARGV[3])
end
if back > 0 and available then
  available = giveBack(count, available, back)
end
-- As on the wire: one permit tells what is available, several tell how many they are.
local told = back == 0 or announce(ARGV[2], ARGV[1], #ids == 1 and available or back)
if back < #ids then
  return 0
end
return told and 1 or 2
