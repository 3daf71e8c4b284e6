-- Takes permits out of the leases, at most 1 000, and counts those that were there as available again; returns what
-- is available then, or false if none was there.
local function takeBack(count, leases, ids, available)
  local back = #ids == 0 and 0 or redis.call('zrem', leases, unpack(ids))
  return back > 0 and giveBack(count, available, back)
end

-- At most so many of the permits that have expired.
local function expired(leases, atMs, most)
  return redis.call('zrangebyscore', leases, '-inf', atMs, 'limit', 0, most)
end

-- How long the next permit is still out; -1: none expires.
local function nextMs(leases, atMs)
  local first = redis.call('zrange', leases, 0, 0, 'withscores')
  local score = tonumber(first[2] or ENDLESS_MS)
  return score < ENDLESS_MS and math.max(score - atMs, 0) or -1
end

-- The answer to whoever wants more than there are.
local function busy(leases, available, atMs)
  return {0, exact(available), exact(available + redis.call('zcard', leases)), nextMs(leases, atMs)}
end

-- The leases live as long as the count, and never shorter than before.
local function liveAsLong(count, leases)
  local countMs, leasesMs = redis.call('pttl', count), redis.call('pttl', leases)
  if countMs > leasesMs then
    redis.call('pexpire', leases, countMs)
  elseif countMs == -1 and leasesMs >= 0 then
    redis.call('persist', leases)
  end
end
