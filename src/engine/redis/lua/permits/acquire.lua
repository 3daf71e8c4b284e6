-- Takes permits under the ids that the caller chose, all or none, or repeats an attempt whose reply was lost.
-- KEYS: count, leases, tombstone
-- ARGV: channel:string, publish:string, nowMs:integer, leaseMs:integer, total:integer, ids:string...
-- RETURNS 1: granted left:string ttlMs:integer
-- RETURNS 0: busy available:string total:string ttlMs:integer
-- RETURNS -2: dead
-- RETURNS -3: foreign
-- RETURNS -4: uninitialised
-- INCLUDE: permits
-- INCLUDE: whole
-- INCLUDE: permit-count
-- INCLUDE: permit-ids
-- INCLUDE: permit-expiry
local count, leases = KEYS[1], KEYS[2]
local pastMs, aheadMs = times(tonumber(ARGV[3]))
local untilMs = math.min(aheadMs + tonumber(ARGV[4]), ENDLESS_MS)
local available = read(count)
local wanted, held, words, told = #ARGV - 5, {}, {}
for i, id in ipairs(rawIds(6)) do
  local score = redis.call('zscore', leases, id)
  held[#held + 1] = score and id or nil
  words[2 * i - 1] = math.max(untilMs, tonumber(score or 0))
  words[2 * i] = id
end
if available == nil then
  return -3
end
if #held == wanted then
  redis.call('zadd', leases, unpack(words))
  return {1, exact(available or 0), 0}
end
if redis.call('exists', KEYS[3]) == 1 then
  return -2
end
if not available then
  if ARGV[5] == '-1' then
    return -4
  end
  -- Permits that are out count, even if somebody removed the number meanwhile.
  available = ARGV[5] - redis.call('zcard', leases)
  redis.call('set', count, available)
  told = available
end
-- What is left of an attempt that has expired in part goes back, too.
local most = math.max(wanted, math.min(wanted - available, 1000))
for _, ids in ipairs({held, expired(leases, pastMs, most)}) do
  local now = takeBack(count, leases, ids, available)
  available, told = now or available, now or told
end
local reply = available < wanted and busy(leases, available, pastMs)
if not reply then
  available = redis.call('decrby', count, wanted)
  redis.call('zadd', leases, unpack(words))
  liveAsLong(count, leases)
  reply = {1, exact(available), available > 0 and 0 or nextMs(leases, pastMs)}
end
if told and told > 0 then
  announce(ARGV[2], ARGV[1], told)
end
return reply
