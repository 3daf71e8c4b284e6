-- Takes an owner out of the queue; those behind it do not count with its wait any more. Answers whether it was in.
local function dequeue(queue, deadlines, owner, waitMs)
  local found = redis.call('zrem', deadlines, owner)
  local behind = false
  for _, other in ipairs(redis.call('lrange', queue, 0, -1)) do
    if other == owner then
      behind = true
    elseif behind then
      redis.call('zincrby', deadlines, -waitMs, other)
    end
  end
  return found + redis.call('lrem', queue, 0, owner) > 0
end

-- Whether a new head must be told: the lock is free (a TTL of -2), or something is due before its own next look.
local function cannotWait(ttlMs, leftMs, lookMs)
  return ttlMs ~= -1 and ttlMs <= lookMs or leftMs <= lookMs
end

-- Tells a waiter; true: the server refuses to publish.
local function tell(owner, channel, publish)
  local published = redis.pcall(publish, channel .. ':' .. owner, '0')
  return type(published) == 'table'
end
