-- Takes the lock for a new owner, or puts it into the queue, or repeats an attempt whose reply was lost.
-- KEYS: lock, tombstone, queue, deadlines
-- ARGV: owner:string, leaseMs:integer, waitMs:integer, nowMs:integer, join:integer, lookMs:integer, channel:string, publish:string
-- RETURNS 1: granted
-- RETURNS 2: queued untilMs:integer ttlMs:integer holder:string head:string headMs:integer
-- RETURNS 0: busy ttlMs:integer holder:string
-- RETURNS -2: dead
-- RETURNS -3: foreign
-- INCLUDE: owners
-- INCLUDE: queue
-- INCLUDE: places
-- INCLUDE: enqueue
local lock, queue, deadlines, owner = KEYS[1], KEYS[3], KEYS[4], ARGV[1]
local leaseMs, waitMs, nowMs, lookMs = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[6])

if redis.call('exists', lock, KEYS[2], queue, deadlines) == 0 then
  redis.call('hset', lock, owner, 1)
  redis.call('pexpire', lock, ARGV[2])
  return 1
end
local ttlMs = redis.call('pttl', lock)
if redis.call('hexists', lock, owner) == 1 then
  if ttlMs < leaseMs then
    redis.call('pexpire', lock, ARGV[2])
  end
  return 1
end
-- Nobody would take an owner that has left out of the queue again.
if redis.call('exists', KEYS[2]) == 1 then
  return -2
end
local holder = ttlMs == -2 and '' or firstOwner(lock)
if not holder then
  return -3
end

local head, headMs, changed = purge(queue, deadlines, nowMs, owner)
if ttlMs == -2 and (not head or head == owner) then
  redis.call('hset', lock, owner, 1)
  redis.call('pexpire', lock, ARGV[2])
  dequeue(queue, deadlines, owner, waitMs)
  head = redis.call('lindex', queue, 0)
  if head and cannotWait(leaseMs, leftOf(deadlines, head, nowMs), lookMs) then
    tell(head, ARGV[7], ARGV[8])
  end
  return 1
end
local terms = {head = head, ttlMs = ttlMs, waitMs = waitMs, nowMs = nowMs}
local untilMs = ARGV[5] == '1' and enqueue(queue, deadlines, owner, terms)
if changed and head and head ~= owner and cannotWait(ttlMs, headMs, lookMs) then
  tell(head, ARGV[7], ARGV[8])
end
if not untilMs then
  return {0, ttlMs, holder}
end
return {2, untilMs, ttlMs, holder, head or owner, math.max(0, headMs or 0)}
