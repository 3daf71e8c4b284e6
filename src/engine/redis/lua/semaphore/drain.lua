-- Takes all permits that are free. A missing count counts as the initial one.
-- KEYS: semaphore, request
-- ARGV: initial:integer, requestMs:integer
-- RETURNS 1: drained permits:string
-- RETURNS -2: dead
-- RETURNS -3: foreign
-- INCLUDE: whole
local semaphore, request = KEYS[1], KEYS[2]
local note = redis.call('get', request)
if note then
  local did = whole(note)
  if not did then
    return -2
  end
  return {1, string.format('%.0f', 0 - did)}
end
local value = redis.call('get', semaphore)
local count = whole(value or ARGV[1])
if not count then
  return -3
end
if count <= 0 then
  redis.call('set', request, '0', 'px', ARGV[2])
  return {1, '0'}
end
local permits = string.format('%.0f', count)
redis.call('set', request, '-' .. permits, 'px', ARGV[2])
if value then
  -- DECRBY leaves the TTL as it is.
  redis.call('decrby', semaphore, permits)
else
  redis.call('set', semaphore, '0')
end
return {1, permits}
