-- Adds permits, or takes some off. A missing count begins with the initial one, or stays missing where that is negative.
-- KEYS: semaphore, request
-- ARGV: permits:integer, initial:integer, requestMs:integer, channel:string, publish:string
-- RETURNS 1: added
-- RETURNS 2: unannounced
-- RETURNS 0: missing
-- RETURNS -1: overflow
-- RETURNS -2: dead
-- RETURNS -3: foreign
-- INCLUDE: whole
local semaphore, request = KEYS[1], KEYS[2]
local note = redis.call('get', request)
if note == 'missing' then
  return 0
end
if note == 'overflow' then
  return -1
end
if note then
  return whole(note) and 1 or -2
end
local value = redis.call('get', semaphore)
local count = whole(value or ARGV[2])
if not count then
  return -3
end
local sum = string.format('%.0f', count + tonumber(ARGV[1]))

-- A full server allows DEL, and after a first write the script may go on to SET.
redis.call('del', request)
if not value and count < 0 then
  redis.call('set', request, 'missing', 'px', ARGV[3])
  return 0
end
if not whole(sum) then
  redis.call('set', request, 'overflow', 'px', ARGV[3])
  return -1
end
redis.call('set', request, ARGV[1], 'px', ARGV[3])
-- INCRBY leaves the TTL as it is.
redis.call('incrby', semaphore, value and ARGV[1] or sum)
-- Redisson's listeners break on a negative number.
local published = redis.pcall(ARGV[5], ARGV[4], tonumber(sum) < 0 and '0' or sum)
if type(published) == 'table' then
  return 2
end
return 1
