-- Tells a waiter that it is the head now; true: the server refuses to publish.
local function tell(owner, channel, publish)
  local published = redis.pcall(publish, channel .. ':' .. owner, '0')
  return type(published) == 'table'
end

-- Whether a new head must be told: the lock is free (a TTL of -2), or something is due before its own next look.
local function cannotWait(ttlMs, leftMs, lookMs)
  return ttlMs ~= -1 and ttlMs <= lookMs or leftMs <= lookMs
end
