-- Takes the lock from the writer that the caller has seen, and from nobody else. Reads inside the write go on.
-- KEYS: lock
-- ARGV: channel:string, publish:string, owners:string...
-- RETURNS 1: freed
-- RETURNS 2: unannounced
-- RETURNS 0: none
-- INCLUDE: readers
-- INCLUDE: settle
-- INCLUDE: writers
local lock = KEYS[1]
if redis.call('hget', lock, 'mode') ~= 'write' then
  return 0
end
local removed = 0
for i = 3, #ARGV do
  -- The rest of a minimum hold is a field of its own name; a reader of the writer's name is not.
  local field = string.find(ARGV[i], ':00$') and ARGV[i] or ARGV[i] .. ':write'
  removed = removed + redis.call('hdel', lock, field)
end
if removed == 0 then
  return 0
end
endWriting(lock)
return tellAll(ARGV[2], ARGV[1]) and 1 or 2
