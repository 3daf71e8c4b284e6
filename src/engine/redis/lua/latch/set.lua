-- Sets the count of a latch that is open, and tells everybody that it is shut.
-- KEYS: latch, request, round
-- ARGV: count:integer, requestMs:integer, channel:string, publish:string
-- RETURNS 1: set
-- RETURNS 2: unannounced
-- RETURNS 0: kept
-- RETURNS -2: dead
-- RETURNS -3: foreign
-- INCLUDE: whole
-- INCLUDE: round
local latch, request, round = KEYS[1], KEYS[2], KEYS[3]
local note = redis.call('get', request)
if note == 'set' then
  return 1
end
if note then
  return note == 'kept' and 0 or -2
end
local value = redis.call('get', latch)
local count = whole(value or '0')
if not count then
  return -3
end
redis.call('set', request, count > 0 and 'kept' or 'set', 'px', ARGV[2])
if count > 0 then
  return 0
end
-- At zero it is open, which needs no key: one would keep the next round from being set.
if ARGV[1] == '0' then
  redis.call('del', latch)
  return 1
end
redis.call('set', latch, ARGV[1])
turn(round, request, ARGV[2])
local published = redis.pcall(ARGV[4], ARGV[3], '1')
if type(published) == 'table' then
  return 2
end
return 1
