-- Takes the mutex for a token (the classic SET NX PX), or repeats an attempt whose reply was lost.
-- KEYS: mutex, tombstone
-- ARGV: owner:string, leaseMs:integer
-- RETURNS 1: granted
-- RETURNS 0: busy ttlMs:integer holder:string
-- RETURNS -2: dead
local mutex, owner = KEYS[1], ARGV[1]
if redis.call('exists', mutex, KEYS[2]) == 0 then
  redis.call('set', mutex, owner, 'px', ARGV[2])
  return 1
end
local holder = redis.call('get', mutex)
if holder == owner then
  if redis.call('pttl', mutex) < tonumber(ARGV[2]) then
    redis.call('pexpire', mutex, ARGV[2])
  end
  return 1
end
if redis.call('exists', KEYS[2]) == 1 then
  return -2
end
return {0, redis.call('pttl', mutex), holder}
