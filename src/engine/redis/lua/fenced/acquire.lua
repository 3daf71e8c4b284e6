-- Takes the lock for an owner with a new token, enters it once more, or repeats an attempt whose reply was lost.
-- KEYS: lock, tombstone, token
-- ARGV: owner:string, count:integer, leaseMs:integer
-- RETURNS 1: granted token:string
-- RETURNS 0: busy ttlMs:integer holder:string
-- RETURNS -1: lost
-- RETURNS -2: dead
-- RETURNS -3: foreign
-- RETURNS -4: badToken
-- INCLUDE: owners
-- INCLUDE: token-text
-- INCLUDE: tokens
local lock, owner = KEYS[1], ARGV[1]
local count, leaseMs = tonumber(ARGV[2]), tonumber(ARGV[3])

local held = redis.call('hget', lock, owner)
if not held and count > 1 then
  return -1
end
if not held and redis.call('exists', KEYS[2]) == 1 then
  return -2
end
if not held and redis.call('exists', lock) == 1 then
  local holder = firstOwner(lock)
  if not holder then
    return -3
  end
  return {0, redis.call('pttl', lock), holder}
end

local last = lastToken(KEYS[3])
if not last or last == 9007199254740991 then
  return -4
end
-- A repeated copy of this call gets a token of its own: the one before may be in use, and none may come twice.
-- First of all writes, so that a full server refuses it before anything else is changed.
local token = redis.call('incr', KEYS[3])
-- The count is absolute.
if not held or tonumber(held) < count then
  redis.call('hset', lock, owner, ARGV[2])
end
if redis.call('pttl', lock) < leaseMs then
  redis.call('pexpire', lock, ARGV[3])
end
-- As text: some clients round integers near 2^53.
return {1, string.format('%.0f', token)}
