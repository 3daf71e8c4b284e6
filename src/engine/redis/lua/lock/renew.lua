-- Raises the TTL of many locks for their owners. Never creates a key and never shortens a TTL.
-- KEYS: locks...
-- ARGV: ttlMs:integer, owners:string...
-- RETURNS: results:integer...
local ttlMs = tonumber(ARGV[1])
local results = {}
for i, lock in ipairs(KEYS) do
  local held = redis.pcall('hexists', lock, ARGV[i + 1])
  if held == 1 then
    if redis.call('pttl', lock) < ttlMs then
      redis.call('pexpire', lock, ARGV[1])
    end
    results[i] = 1
  elseif held == 0 and redis.call('exists', lock) == 0 then
    results[i] = 0
  else
    results[i] = -1
  end
end
return results
