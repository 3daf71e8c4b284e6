-- Takes the lock from the owners that the caller has seen, and from nobody else.
-- KEYS: lock
-- ARGV: channel:string, publish:string, owners:string...
-- RETURNS 1: freed
-- RETURNS 2: unannounced
-- RETURNS 0: none
local removed = 0
for i = 3, #ARGV do
  removed = removed + redis.call('hdel', KEYS[1], ARGV[i])
end
if removed == 0 then
  return 0
end
local published = redis.pcall(ARGV[2], ARGV[1], '0')
if type(published) == 'table' then
  return 2
end
return 1
