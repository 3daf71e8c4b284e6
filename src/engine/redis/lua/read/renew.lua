-- Raises the TTL of many read holds and of their hashes. Never creates a key, never shortens a TTL, and touches no
-- reader but those named.
-- KEYS: locks...
-- ARGV: ttlMs:integer, owners:string...
-- RETURNS: results:integer...
-- INCLUDE: readers
local ttlMs = tonumber(ARGV[1])

local function raise(key)
  local left = redis.call('pttl', key)
  if left < ttlMs and left ~= -2 then
    redis.call('pexpire', key, ARGV[1])
  end
  return left ~= -2
end

local results = {}
for i, lock in ipairs(KEYS) do
  local owner = ARGV[i + 1]
  local held = redis.pcall('hget', lock, owner)
  -- A hold whose key is gone has run out, whatever keeps the hash alive.
  if type(held) == 'string' and raise(holdKey(lock, owner, 1)) then
    for hold = 2, tonumber(held) or 0 do
      raise(holdKey(lock, owner, hold))
    end
    raise(lock)
    results[i] = 1
  else
    results[i] = -redis.call('exists', lock)
  end
end
return results
