-- Reads who holds the lock for writing: owners and counts in turn.
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
local mode = redis.call('hget', lock, 'mode')
if not mode or not firstOwner(lock, true) then
  return -3
end
local reply = {1, redis.call('pttl', lock)}
local fields = redis.call('hgetall', lock)
for i = 1, #fields, 2 do
  local field = fields[i]
  -- The rest of a minimum hold stands there as `:00`.
  if mode == 'write' and (string.find(field, ':write$') or string.find(field, ':00$')) then
    reply[#reply + 1] = (string.gsub(field, ':write$', ''))
    reply[#reply + 1] = fields[i + 1]
  end
end
if #reply == 2 then
  return 0
end
return reply
