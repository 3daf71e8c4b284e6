-- Puts off the expiry of the permits of many owners. Never creates a permit and never brings an expiry forward.
-- KEYS: leases...
-- ARGV: nowMs:integer, ttlMs:integer, owners:string...
-- RETURNS: results:integer...
-- INCLUDE: permits
local pastMs, aheadMs = times(tonumber(ARGV[1]))
local untilMs = math.min(aheadMs + tonumber(ARGV[2]), ENDLESS_MS)
local results = {}
for i, leases in ipairs(KEYS) do
  local words = {}
  results[i] = 1
  for hex in string.gmatch(ARGV[i + 2], '%x+') do
    local id = raw(hex)
    local score = redis.pcall('zscore', leases, id)
    if type(score) == 'table' then
      results[i] = -1
    elseif not score or tonumber(score) <= pastMs then
      results[i] = math.min(results[i], 0)
    elseif tonumber(score) < untilMs then
      words[#words + 1] = untilMs
      words[#words + 1] = id
    end
  end
  if results[i] == 1 and #words > 0 then
    -- A full server allows ZREM, and after a first write, even of nothing, the script may go on to ZADD.
    redis.call('zrem', leases, '')
    redis.call('zadd', leases, unpack(words))
  end
end
return results
