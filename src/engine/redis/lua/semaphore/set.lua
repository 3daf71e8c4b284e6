-- Sets the number of permits where there is none.
-- KEYS: semaphore, request
-- ARGV: permits:integer, ttlMs:integer, requestMs:integer, channel:string, publish:string
-- RETURNS 1: set
-- RETURNS 2: unannounced
-- RETURNS 0: kept
-- RETURNS -2: dead
-- RETURNS -3: foreign
-- INCLUDE: whole
local semaphore, request = KEYS[1], KEYS[2]
local note = redis.call('get', request)
if note == 'set' then
  return 1
end
if note then
  return note == 'kept' and 0 or -2
end
local value = redis.call('get', semaphore)
if value and not whole(value) then
  return -3
end
redis.call('set', request, value and 'kept' or 'set', 'px', ARGV[3])
if value then
  return 0
end
redis.call('set', semaphore, ARGV[1])
if ARGV[2] ~= '0' then
  redis.call('pexpire', semaphore, ARGV[2])
end
local published = redis.pcall(ARGV[5], ARGV[4], ARGV[1])
if type(published) == 'table' then
  return 2
end
return 1
