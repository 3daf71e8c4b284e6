-- Takes a count-down back, unless it opened the latch, and notes that it is over, so that a late copy does nothing.
-- KEYS: latch, request
-- ARGV: requestMs:integer
-- RETURNS 1: undone
-- RETURNS 0: marked
-- INCLUDE: whole
local latch, request = KEYS[1], KEYS[2]
local note = redis.call('get', request)
local value = note and whole(note) and redis.call('get', latch)
local count = value and whole(value)
-- A full server allows DEL, and after a first write the script may go on to SET.
redis.call('del', request)
redis.call('set', request, 'ended', 'px', ARGV[1])
if not count or count < 1 then
  return 0
end
redis.call('incr', latch)
return 1
