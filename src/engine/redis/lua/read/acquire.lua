-- Takes the lock for reading: alone, beside other readers, or inside the writer's own hold; enters once more, or
-- repeats an attempt whose reply was lost. A read hold is there only with its field and its first hold key.
-- KEYS: lock, tombstone
-- ARGV: owner:string, writer:string, count:integer, leaseMs:integer
-- RETURNS 1: granted
-- RETURNS 0: busy ttlMs:integer holder:string
-- RETURNS -1: lost
-- RETURNS -2: dead
-- RETURNS -3: foreign
-- INCLUDE: owners
-- INCLUDE: readers
local lock, owner = KEYS[1], ARGV[1]
local count, leaseMs = tonumber(ARGV[3]), tonumber(ARGV[4])

local seen = redis.call('hmget', lock, 'mode', owner)
local mode = seen[1]
local held = mode and seen[2]
if held and redis.call('exists', holdKey(lock, owner, 1)) == 0 then
  held = false
end
if not held and count > 1 then
  return -1
end
if not held and redis.call('exists', KEYS[2]) == 1 then
  return -2
end
if not mode then
  if redis.call('exists', lock) == 1 then
    return -3
  end
  redis.call('hset', lock, 'mode', 'read')
end

local left = redis.call('pttl', lock)
if mode and not held then
  local busy = mode ~= 'read' and redis.call('hexists', lock, ARGV[2] .. ':write') == 0
  -- A lock in use has a TTL; a hash without one may be somebody's data, and must not get one.
  local holder = (busy or left == -1) and firstOwner(lock, true)
  if holder == nil then
    return -3
  elseif busy then
    return {0, left, (string.gsub(holder, ':write$', ''))}
  end
end
if not held or tonumber(held) < count then
  redis.call('hset', lock, owner, ARGV[3])
end
for _, i in ipairs(count > 1 and {1, count} or {1}) do
  local key = holdKey(lock, owner, i)
  -- What is left of an owner's former hold says nothing about a new one.
  if not held or redis.call('pttl', key) < leaseMs then
    redis.call('set', key, '1', 'px', ARGV[4])
  end
end
if left < leaseMs then
  redis.call('pexpire', lock, ARGV[4])
end
return 1
