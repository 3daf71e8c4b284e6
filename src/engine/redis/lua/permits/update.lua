-- Lets a permit expire at another time, sooner or later than before.
-- KEYS: leases
-- ARGV: nowMs:integer, leaseMs:integer, id:string
-- RETURNS 1: updated
-- RETURNS 0: gone
-- INCLUDE: permits
local pastMs, aheadMs = times(tonumber(ARGV[1]))
local id = raw(ARGV[3])
local score = redis.call('zscore', KEYS[1], id)
if not score or tonumber(score) <= pastMs then
  return 0
end
redis.call('zadd', KEYS[1], math.min(aheadMs + tonumber(ARGV[2]), ENDLESS_MS), id)
return 1
