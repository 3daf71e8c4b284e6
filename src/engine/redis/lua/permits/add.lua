-- Changes by how many permits there are in all.
-- KEYS: count, leases, request
-- ARGV: channel:string, publish:string, permits:integer, total:integer, markMs:integer
-- RETURNS 1: set
-- RETURNS 2: unannounced
-- RETURNS -3: foreign
-- INCLUDE: permits
local count = KEYS[1]
local available = read(count)
if available == nil then
  return -3
end
if redis.call('exists', KEYS[3]) == 1 then
  return 1
end
if not available then
  redis.call('set', count, math.max(ARGV[4], 0) - redis.call('zcard', KEYS[2]))
end
redis.call('incrby', count, ARGV[3])
redis.call('set', KEYS[3], '1', 'px', ARGV[5])
local told = tonumber(ARGV[3]) < 0 or announce(ARGV[2], ARGV[1], tonumber(ARGV[3]))
return told and 1 or 2
