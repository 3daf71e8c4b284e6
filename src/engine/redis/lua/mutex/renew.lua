-- Raises the TTL of many mutexes for their tokens. Never creates a key and never shortens a TTL.
-- KEYS: mutexes...
-- ARGV: ttlMs:integer, owners:string...
-- RETURNS: results:integer...
local ttlMs = tonumber(ARGV[1])
local results = {}
for i, mutex in ipairs(KEYS) do
  local holder = redis.pcall('get', mutex)
  if holder == ARGV[i + 1] then
    if redis.call('pttl', mutex) < ttlMs then
      redis.call('pexpire', mutex, ARGV[1])
    end
    results[i] = 1
  else
    results[i] = holder and -1 or 0
  end
end
return results
