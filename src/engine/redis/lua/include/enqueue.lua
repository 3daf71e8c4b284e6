-- A head's deadline may be so far behind before it is moved on.
local SLACK_MS = 100

-- Puts the caller into the queue, or keeps its place there. Answers when it might come to it.
local function enqueue(queue, deadlines, owner, terms)
  local nowMs, waitMs, ttlMs = terms.nowMs, terms.waitMs, terms.ttlMs
  local deadline = redis.call('zscore', deadlines, owner)
  if not deadline then
    local last = redis.call('lindex', queue, -1)
    local untilMs = last and math.max(0, (redis.call('zscore', deadlines, last) or nowMs) - nowMs) or ttlMs
    redis.call('zadd', deadlines, untilMs + waitMs + nowMs, owner)
    redis.call('rpush', queue, owner)
    return untilMs
  end
  local untilMs = math.max(0, ttlMs)
  local lateMs = nowMs + untilMs + waitMs - deadline
  -- The holder holds on longer than was known: that is true for all who stand behind the head, too.
  if terms.head == owner and lateMs > SLACK_MS then
    for _, other in ipairs(redis.call('lrange', queue, 0, -1)) do
      redis.call('zincrby', deadlines, lateMs, other)
    end
  end
  return untilMs
end
