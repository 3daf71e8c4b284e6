-- Sets how many permits there are in all, unless somebody has said so before.
-- KEYS: count, leases, request
-- ARGV: channel:string, publish:string, permits:integer, markMs:integer
-- RETURNS 1: set
-- RETURNS 2: unannounced
-- RETURNS 0: exists
-- RETURNS -3: foreign
-- INCLUDE: permits
local count = KEYS[1]
local available = read(count)
if available == nil then
  return -3
end
-- A repeated call finds its own mark, and answers as the first one did.
if redis.call('exists', KEYS[3]) == 1 then
  return 1
end
if available then
  return 0
end
redis.call('set', count, ARGV[3] - redis.call('zcard', KEYS[2]))
redis.call('set', KEYS[3], '1', 'px', ARGV[4])
return announce(ARGV[2], ARGV[1], tonumber(ARGV[3])) and 1 or 2
