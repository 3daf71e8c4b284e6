-- Sets how many permits there are in all, those that are out included.
-- KEYS: count, leases, request
-- ARGV: channel:string, publish:string, permits:integer, markMs:integer
-- RETURNS 1: set
-- RETURNS 2: unannounced
-- RETURNS -3: foreign
-- INCLUDE: permits
local count, leases = KEYS[1], KEYS[2]
local available = read(count)
if available == nil then
  return -3
end
local wanted = ARGV[3] - redis.call('zcard', leases)
if available == wanted or redis.call('exists', KEYS[3]) == 1 then
  return 1
end
redis.call('incrby', count, string.format('%.0f', wanted - (available or 0)))
redis.call('set', KEYS[3], '1', 'px', ARGV[4])
return announce(ARGV[2], ARGV[1], tonumber(ARGV[3])) and 1 or 2
