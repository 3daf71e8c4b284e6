-- Counts the permits, and takes back what has expired.
-- KEYS: count, leases
-- ARGV: channel:string, publish:string, nowMs:integer
-- RETURNS 1: counted available:string acquired:integer
-- RETURNS 0: uninitialised acquired:integer
-- RETURNS -3: foreign
-- INCLUDE: permits
-- INCLUDE: whole
-- INCLUDE: permit-count
-- INCLUDE: permit-expiry
local count, leases = KEYS[1], KEYS[2]
local pastMs = times(tonumber(ARGV[3]))
local available = read(count)
if available == nil then
  return -3
end
local acquired = redis.call('zcount', leases, '(' .. string.format('%.0f', pastMs), '+inf')
if not available then
  return {0, acquired}
end
-- A bounded number of them is taken back; the count is right all the same.
local now = takeBack(count, leases, expired(leases, pastMs, 1000), available)
available = math.min((now or available) + redis.call('zcount', leases, '-inf', pastMs), MOST)
if now and now > 0 then
  announce(ARGV[2], ARGV[1], now)
end
return {1, exact(available), acquired}
