-- Removes a latch, which opens it, and tells everybody.
-- KEYS: latch, request, round
-- ARGV: requestMs:integer, channel:string, publish:string
-- RETURNS 1: deleted
-- RETURNS 2: unannounced
-- RETURNS 0: missing
-- RETURNS -2: dead
-- RETURNS -3: foreign
-- INCLUDE: whole
-- INCLUDE: round
local latch, request, round = KEYS[1], KEYS[2], KEYS[3]
local note = redis.call('get', request)
if note == 'deleted' then
  return 1
end
if note then
  return note == 'missing' and 0 or -2
end
local value = redis.call('get', latch)
if value and not whole(value) then
  return -3
end
-- A full server allows DEL, and after a first write the script may go on to SET.
redis.call('del', latch)
redis.call('set', request, value and 'deleted' or 'missing', 'px', ARGV[1])
if not value then
  return 0
end
turn(round, request, ARGV[1])
-- Not 1, as Redisson tells it: its listeners would sleep on, although the latch is open.
local published = redis.pcall(ARGV[3], ARGV[2], '0')
if type(published) == 'table' then
  return 2
end
return 1
