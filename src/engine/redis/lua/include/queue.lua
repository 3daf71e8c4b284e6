-- The queue of a fair lock as Redisson keeps it: a list of owners, and a sorted set with the deadline of each.

-- Makes both agree again after somebody has touched one of them: one place and one deadline for each owner.
local function mend(queue, deadlines)
  if redis.call('llen', queue) == redis.call('zcard', deadlines) then
    return
  end
  local placed = {}
  local owners = redis.call('lrange', queue, 0, -1)
  redis.call('del', queue)
  for _, owner in ipairs(owners) do
    if not placed[owner] and redis.call('zscore', deadlines, owner) then
      placed[owner] = true
      redis.call('rpush', queue, owner)
    end
  end
  for _, owner in ipairs(redis.call('zrange', deadlines, 0, -1)) do
    if not placed[owner] then
      redis.call('zrem', deadlines, owner)
    end
  end
end

-- How long an owner's place is kept.
local function leftOf(deadlines, owner, nowMs)
  return (redis.call('zscore', deadlines, owner) or nowMs) - nowMs
end

-- Drops dead heads, but never the caller, who is alive. Answers the head, how long its place is kept, and whether it is
-- a new one. A client whose clock is ahead must not drop others before their time: the earlier of both clocks counts.
local function purge(queue, deadlines, nowMs, caller)
  mend(queue, deadlines)
  local time = redis.call('time')
  local earlierMs = math.min(nowMs, time[1] * 1000 + math.floor(time[2] / 1000))
  local changed = false
  while true do
    local head = redis.call('lindex', queue, 0)
    local leftMs = head and leftOf(deadlines, head, earlierMs)
    if not head or leftMs > 0 or head == caller then
      return head, leftMs, changed
    end
    redis.call('lpop', queue)
    redis.call('zrem', deadlines, head)
    changed = true
  end
end
