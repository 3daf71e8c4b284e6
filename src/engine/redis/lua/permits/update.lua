-- Lets a permit expire at another time, sooner or later than before.
-- KEYS: leases, request
-- ARGV: nowMs:integer, leaseMs:integer, markMs:integer, id:string
-- RETURNS 1: updated
-- RETURNS 0: gone
-- INCLUDE: permits
local leases, request = KEYS[1], KEYS[2]
-- A late copy must not undo what came after it.
if redis.call('exists', request) == 1 then
  return 1
end
local pastMs, aheadMs = times(tonumber(ARGV[1]))
local id = raw(ARGV[4])
local score = redis.call('zscore', leases, id)
if not score or tonumber(score) <= pastMs then
  return 0
end
-- A full server allows DEL, and after a first write, even of nothing, the script may go on.
redis.call('del', request)
redis.call('set', request, 'set', 'px', ARGV[3])
redis.call('zadd', leases, math.min(aheadMs + tonumber(ARGV[2]), ENDLESS_MS), id)
return 1
