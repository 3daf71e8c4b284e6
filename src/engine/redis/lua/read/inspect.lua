-- Reads who holds the lock for reading: owners and counts in turn. A reader whose hold has run out has the count 0.
-- KEYS: lock
-- ARGV:
-- RETURNS 1: held ttlMs:integer holders:string...
-- RETURNS 0: free
-- RETURNS -3: foreign
-- INCLUDE: owners
-- INCLUDE: readers
local lock = KEYS[1]
if redis.call('exists', lock) == 0 then
  return 0
end
local mode = redis.call('hget', lock, 'mode')
if not mode or not firstOwner(lock, true) then
  return -3
end
local reply = {1, redis.call('pttl', lock)}
local fields = redis.call('hgetall', lock)
for i = 1, #fields, 2 do
  local field = fields[i]
  if field ~= 'mode' and not string.find(field, ':write$') and (mode == 'read' or not string.find(field, ':00$')) then
    reply[#reply + 1] = field
    reply[#reply + 1] = redis.call('exists', holdKey(lock, field, 1)) == 1 and fields[i + 1] or '0'
  end
end
if #reply == 2 then
  return 0
end
return reply
