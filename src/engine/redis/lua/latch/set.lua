-- Sets the count of a latch that has none, and tells everybody that it is shut.
-- KEYS: latch, request
-- ARGV: count:integer, requestMs:integer, channel:string, publish:string
-- RETURNS 1: set
-- RETURNS 2: unannounced
-- RETURNS 0: kept
-- RETURNS -2: dead
-- RETURNS -3: foreign
-- INCLUDE: whole
local latch, request = KEYS[1], KEYS[2]
local note = redis.call('get', request)
if note == 'set' then
  return 1
end
if note then
  return note == 'kept' and 0 or -2
end
local value = redis.call('get', latch)
if value and not whole(value) then
  return -3
end
redis.call('set', request, value and 'kept' or 'set', 'px', ARGV[2])
if value then
  return 0
end
redis.call('set', latch, ARGV[1])
local published = redis.pcall(ARGV[4], ARGV[3], '1')
if type(published) == 'table' then
  return 2
end
return 1
