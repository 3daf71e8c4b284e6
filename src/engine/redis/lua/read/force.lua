-- Takes the lock from the readers that the caller has seen, and from nobody else; from none while somebody writes.
-- KEYS: lock
-- ARGV: channel:string, publish:string, owners:string...
-- RETURNS 1: freed
-- RETURNS 2: unannounced
-- RETURNS 0: none
-- INCLUDE: readers
-- INCLUDE: settle
local lock = KEYS[1]
if redis.call('hget', lock, 'mode') ~= 'read' then
  return 0
end
local own, removed = -2, 0
for i = 3, #ARGV do
  local held = redis.call('hget', lock, ARGV[i])
  if held then
    own = math.max(own, longestHold(lock, ARGV[i], held))
    dropReader(lock, ARGV[i], held)
    removed = removed + 1
  end
end
if removed == 0 then
  return 0
end
local published = settle(lock, own) and redis.pcall(ARGV[2], ARGV[1], '0')
if type(published) == 'table' then
  return 2
end
return 1
