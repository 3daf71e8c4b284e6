-- Sets how many permits there are in all, those that are out included.
-- KEYS: count, leases, request
-- ARGV: channel:string, publish:string, permits:integer, markMs:integer
-- RETURNS 1: set
-- RETURNS 2: unannounced
-- RETURNS -3: foreign
-- INCLUDE: whole
-- INCLUDE: permit-count
local count, request = KEYS[1], KEYS[3]
local available = read(count)
if available == nil then
  return -3
end
-- A late copy must not undo what came after it.
if redis.call('exists', request) == 1 then
  return 1
end
local wanted = ARGV[3] - redis.call('zcard', KEYS[2])
redis.call('set', request, 'set', 'px', ARGV[4])
if available == wanted then
  return 1
end
-- In two steps: the difference of two numbers may be more than a double holds exactly. Neither touches the TTL.
if available then
  redis.call('decrby', count, available)
end
redis.call('incrby', count, wanted)
return announce(ARGV[2], ARGV[1], tonumber(ARGV[3])) and 1 or 2
