-- Tells how long a permit is still out; -1: for ever.
-- KEYS: leases
-- ARGV: nowMs:integer, id:string
-- RETURNS 1: held ttlMs:integer
-- RETURNS 0: gone
-- INCLUDE: permits
local pastMs = times(tonumber(ARGV[1]))
local score = tonumber(redis.call('zscore', KEYS[1], raw(ARGV[2])) or 0)
if score <= pastMs then
  return 0
end
return {1, score < ENDLESS_MS and score - pastMs or -1}
