-- Takes the mutex from the token that the caller has seen, and from nobody else.
-- KEYS: mutex
-- ARGV: owner:string, channel:string, publish:string
-- RETURNS 1: freed
-- RETURNS 2: unannounced
-- RETURNS 0: none
if redis.call('get', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('del', KEYS[1])
local published = redis.pcall(ARGV[3], ARGV[2], '0')
if type(published) == 'table' then
  return 2
end
return 1
