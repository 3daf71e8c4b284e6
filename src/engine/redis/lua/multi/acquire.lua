-- Takes several locks for one owner, all or none, or repeats an attempt whose reply was lost.
-- KEYS: keys...
-- ARGV: owner:string, leaseMs:integer
-- RETURNS 1: granted
-- RETURNS 0: busy index:integer ttlMs:integer holder:string
-- RETURNS -2: dead index:integer
-- RETURNS -3: foreign index:integer
-- INCLUDE: owners

-- The first half of the keys are the locks, the second half their tombstones.
local owner, leaseMs = ARGV[1], tonumber(ARGV[2])
local size = #KEYS / 2
local held = {}

for i = 1, size do
  local lock = KEYS[i]
  held[i] = redis.pcall('hget', lock, owner)
  if type(held[i]) == 'table' then
    return {-3, i - 1}
  end
  if not held[i] and redis.call('exists', KEYS[size + i]) == 1 then
    return {-2, i - 1}
  end
  if not held[i] and redis.call('exists', lock) == 1 then
    local holder = firstOwner(lock)
    if not holder then
      return {-3, i - 1}
    end
    return {0, i - 1, redis.call('pttl', lock), holder}
  end
end

for i = 1, size do
  if not held[i] then
    redis.call('hset', KEYS[i], owner, 1)
  end
  -- Never shortened; a new key has no TTL yet.
  if redis.call('pttl', KEYS[i]) < leaseMs then
    redis.call('pexpire', KEYS[i], ARGV[2])
  end
end
return 1
