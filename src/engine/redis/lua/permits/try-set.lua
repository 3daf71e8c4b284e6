-- Sets how many permits there are in all, unless somebody has said so before.
-- KEYS: count, leases, request
-- ARGV: channel:string, publish:string, permits:integer, markMs:integer
-- RETURNS 1: set
-- RETURNS 2: unannounced
-- RETURNS 0: exists
-- RETURNS -3: foreign
-- INCLUDE: whole
-- INCLUDE: permit-count
local count, request = KEYS[1], KEYS[3]
local available = read(count)
if available == nil then
  return -3
end
-- A repeated call finds the note of the first one, and answers as that did.
local note = redis.call('get', request)
if note then
  return note == 'exists' and 0 or 1
end
local out = redis.call('zcard', KEYS[2])
redis.call('set', request, available and 'exists' or 'set', 'px', ARGV[4])
if available then
  return 0
end
redis.call('set', count, ARGV[3] - out)
return announce(ARGV[2], ARGV[1], tonumber(ARGV[3])) and 1 or 2
