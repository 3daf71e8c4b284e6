-- Takes the lock from the owners that the caller has seen, and from nobody else.
-- KEYS: lock, queue, deadlines
-- ARGV: channel:string, publish:string, nowMs:integer, owners:string...
-- RETURNS 1: freed
-- RETURNS 2: unannounced
-- RETURNS 0: none
-- INCLUDE: queue
-- INCLUDE: places
local removed = 0
for i = 4, #ARGV do
  removed = removed + redis.call('hdel', KEYS[1], ARGV[i])
end
if removed == 0 then
  return 0
end
local head = purge(KEYS[2], KEYS[3], tonumber(ARGV[3]))
if head and tell(head, ARGV[1], ARGV[2]) then
  return 2
end
return 1
