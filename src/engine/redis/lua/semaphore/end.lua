-- Ends a request: gives back what it took, once, and notes that it is over, so that a late copy of it does nothing.
-- KEYS: semaphore, request
-- ARGV: permits:integer, requestMs:integer, channel:string, publish:string
-- RETURNS 1: released
-- RETURNS 2: unannounced
-- RETURNS 0: gone
-- RETURNS 3: marked
-- INCLUDE: whole
local semaphore, request = KEYS[1], KEYS[2]
local note = redis.call('get', request)
if note == 'ended' then
  return 1
end
if note == 'gone' then
  return 0
end
local did = note and whole(note)
local back = did and -did or tonumber(ARGV[1])
local value = back ~= 0 and redis.call('get', semaphore)
local count = value and whole(value)
local fits = count and whole(string.format('%.0f', count + back))

-- A full server allows DEL, and after a first write the script may go on to SET.
redis.call('del', request)
if back == 0 then
  redis.call('set', request, 'ended', 'px', ARGV[2])
  return 3
end
if not fits then
  redis.call('set', request, 'gone', 'px', ARGV[2])
  return 0
end
redis.call('set', request, 'ended', 'px', ARGV[2])
redis.call('incrby', semaphore, string.format('%.0f', back))
if back > 0 then
  -- Redisson's listeners break on a negative number.
  local published = redis.pcall(ARGV[4], ARGV[3], string.format('%.0f', math.max(fits, 0)))
  if type(published) == 'table' then
    return 2
  end
end
return 1
