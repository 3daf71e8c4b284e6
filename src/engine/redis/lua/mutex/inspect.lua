-- Reads who holds the mutex.
-- KEYS: mutex
-- ARGV:
-- RETURNS 1: held ttlMs:integer holder:string
-- RETURNS 0: free
local holder = redis.call('get', KEYS[1])
if not holder then
  return 0
end
return {1, redis.call('pttl', KEYS[1]), holder}
