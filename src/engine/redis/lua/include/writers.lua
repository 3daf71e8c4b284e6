-- After the writer is gone: the writer's own readers go on as readers; without any the lock is free.
local function endWriting(lock)
  if redis.call('hlen', lock) == 1 then
    redis.call('del', lock)
    return
  end
  redis.call('hset', lock, 'mode', 'read')
  settle(lock, math.huge)
end

-- Tells all waiters. Redisson's `1` wakes only those that sleep already, a `0` one that is about to, too: so both.
local function tellAll(publish, channel)
  local told = redis.pcall(publish, channel, '1')
  redis.pcall(publish, channel, '0')
  return type(told) ~= 'table'
end
