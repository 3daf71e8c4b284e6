-- After the writer is gone: the writer's own readers go on as readers; without any the lock is free.
local function endWriting(lock)
  if redis.call('hlen', lock) == 1 then
    redis.call('del', lock)
    return
  end
  redis.call('hset', lock, 'mode', 'read')
  settle(lock, math.huge)
end
