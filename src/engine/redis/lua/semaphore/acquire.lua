-- Takes permits, or repeats an attempt whose reply was lost. A missing count begins with the initial one, if any.
-- KEYS: semaphore, request
-- ARGV: permits:integer, initial:integer, requestMs:integer, channel:string, publish:string
-- RETURNS 1: granted left:string
-- RETURNS 0: busy available:string
-- RETURNS -1: uninitialised
-- RETURNS -2: dead
-- RETURNS -3: foreign
-- INCLUDE: whole
local semaphore, request = KEYS[1], KEYS[2]
local permits = tonumber(ARGV[1])
local value = redis.call('get', semaphore)
local count = whole(value or ARGV[2])
if not count then
  return -3
end
-- The note says what this request did before, so a repeated or late copy changes nothing.
local note = redis.call('get', request)
if note then
  if not whole(note) then
    return -2
  end
  return {1, value or '0'}
end
if not value and count < 0 then
  return -1
end

if not value then
  redis.call('set', semaphore, ARGV[2])
end
local granted = count >= permits
if granted then
  redis.call('decrby', semaphore, ARGV[1])
  redis.call('set', request, '-' .. ARGV[1], 'px', ARGV[3])
  count = count - permits
end
-- As text, since clients read the largest integers wrongly.
local left = string.format('%.0f', count)
if not value and count > 0 then
  redis.pcall(ARGV[5], ARGV[4], left)
end
if granted then
  return {1, left}
end
return {0, left}
