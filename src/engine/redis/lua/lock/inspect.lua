-- Reads who holds the lock: owners and counts in turn.
-- KEYS: lock
-- ARGV:
-- RETURNS 1: held ttlMs:integer holders:string...
-- RETURNS 0: free
-- RETURNS -3: foreign
-- INCLUDE: owners
local lock = KEYS[1]
if redis.call('exists', lock) == 0 then
  return 0
end
if not firstOwner(lock) then
  return -3
end
local reply = {1, redis.call('pttl', lock)}
for _, value in ipairs(redis.call('hgetall', lock)) do
  reply[#reply + 1] = value
end
return reply
