-- Ends an owner that was handed to nobody: out of the lock, if it got it, and out of the queue; its late copies are refused.
-- KEYS: lock, tombstone, queue, deadlines
-- ARGV: owner:string, waitMs:integer, entombMs:integer, nowMs:integer, lookMs:integer, channel:string, publish:string
-- RETURNS 1: left
-- RETURNS 2: unannounced
-- RETURNS 0: none
-- INCLUDE: queue
-- INCLUDE: places
local lock, queue, deadlines, owner = KEYS[1], KEYS[3], KEYS[4], ARGV[1]
-- Whatever is under the lock's name now, the owner leaves the queue.
local freed = redis.pcall('hdel', lock, owner) == 1
if ARGV[3] ~= '0' then
  redis.call('del', KEYS[2])
  redis.call('set', KEYS[2], '1', 'px', ARGV[3])
end
mend(queue, deadlines)
local led = redis.call('lindex', queue, 0) == owner
local left = dequeue(queue, deadlines, owner, tonumber(ARGV[2]))
if not left and not freed then
  return 0
end
if led or freed then
  local head, headMs = purge(queue, deadlines, tonumber(ARGV[4]))
  if head and cannotWait(redis.call('pttl', lock), headMs, tonumber(ARGV[5])) and tell(head, ARGV[6], ARGV[7]) then
    return 2
  end
end
return 1
