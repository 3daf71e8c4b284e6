-- The key of an owner's i-th read hold; its TTL is the lease of that hold.
local function holdKey(lock, owner, i)
  local base = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'
  return base .. ':' .. owner .. ':rwlock_timeout:' .. i
end

-- How long the longest of an owner's read holds still lasts; below 1: all have run out.
local function longestHold(lock, owner, count)
  local longest = -2
  for i = tonumber(count) or 0, 1, -1 do
    local left = redis.call('pttl', holdKey(lock, owner, i))
    longest = math.max(longest, left == -1 and math.huge or left)
  end
  return longest
end

-- Removes a reader and its holds.
local function dropReader(lock, owner, count)
  -- HDEL and DEL are writes that a full server allows; after them a script may go on to others.
  redis.call('hdel', lock, owner)
  for i = tonumber(count) or 0, 1, -1 do
    redis.call('del', holdKey(lock, owner, i))
  end
end
