-- Changes by how many permits there are in all.
-- KEYS: count, leases, request
-- ARGV: channel:string, publish:string, permits:integer, total:integer, markMs:integer
-- RETURNS 1: set
-- RETURNS 2: unannounced
-- RETURNS -1: overflow
-- RETURNS -3: foreign
-- INCLUDE: whole
-- INCLUDE: permit-count
local count, request = KEYS[1], KEYS[3]
local permits = tonumber(ARGV[3])
local available = read(count)
if available == nil then
  return -3
end
-- A repeated call finds the note of the first one, and answers as that did.
local note = redis.call('get', request)
if note then
  return note == 'overflow' and -1 or 1
end
local out = redis.call('zcard', KEYS[2])
local sum = (available or math.max(ARGV[4], 0) - out) + permits
-- What is out comes back to it.
if sum < -MOST or sum + out > MOST then
  redis.call('set', request, 'overflow', 'px', ARGV[5])
  return -1
end
redis.call('set', request, 'set', 'px', ARGV[5])
redis.call('incrby', count, available and ARGV[3] or exact(sum))
local told = permits < 0 or announce(ARGV[2], ARGV[1], permits)
return told and 1 or 2
