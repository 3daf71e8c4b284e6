-- Reads how many permits are free.
-- KEYS: semaphore
-- ARGV:
-- RETURNS 1: counted count:string
-- RETURNS 0: missing
-- RETURNS -3: foreign
-- INCLUDE: whole
local value = redis.call('get', KEYS[1])
if not value then
  return 0
end
if not whole(value) then
  return -3
end
-- As text, since clients read the largest integers wrongly.
return {1, value}
