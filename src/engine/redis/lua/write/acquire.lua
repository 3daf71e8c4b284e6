-- Takes the lock for writing, enters it once more, or repeats an attempt whose reply was lost.
-- KEYS: lock, tombstone
-- ARGV: owner:string, count:integer, leaseMs:integer
-- RETURNS 1: granted
-- RETURNS 0: busy ttlMs:integer holder:string
-- RETURNS -1: lost
-- RETURNS -2: dead
-- RETURNS -3: foreign
-- INCLUDE: owners
local lock, writer = KEYS[1], ARGV[1] .. ':write'
local count, leaseMs = tonumber(ARGV[2]), tonumber(ARGV[3])

if count == 1 and redis.call('exists', lock, KEYS[2]) == 0 then
  redis.call('hset', lock, 'mode', 'write', writer, '1')
  redis.call('pexpire', lock, ARGV[3])
  return 1
end

-- The count is absolute, so a repeated or late copy of this call changes nothing.
local held = redis.call('hget', lock, writer)
if held then
  if redis.call('pttl', lock) < leaseMs then
    redis.call('pexpire', lock, ARGV[3])
  end
  if tonumber(held) < count then
    redis.call('hset', lock, writer, ARGV[2])
  end
  return 1
end
if count > 1 then
  return -1
end
if redis.call('exists', KEYS[2]) == 1 then
  return -2
end

-- A hash without a mode is another lock's, or somebody's data.
local holder = redis.call('hget', lock, 'mode') and firstOwner(lock, true)
if not holder then
  return -3
end
return {0, redis.call('pttl', lock), (string.gsub(holder, ':write$', ''))}
