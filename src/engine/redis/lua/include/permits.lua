-- The "for ever" of Redisson's permits without a lease.
local ENDLESS_MS = 922337203685477

-- The bytes that hex characters stand for: users see the one, Redis stores the other.
local function raw(hex)
  return (string.gsub(hex, '%x%x', function(byte)
    return string.char(tonumber(byte, 16))
  end))
end

-- The clocks of client and server: first the one that is behind, by which permits have expired, then the one that is
-- ahead, from which an expiry counts. So no wrong clock takes a permit away from its holder.
local function times(clientMs)
  local time = redis.call('time')
  local serverMs = time[1] * 1000 + math.floor(time[2] / 1000)
  return math.min(clientMs, serverMs), math.max(clientMs, serverMs)
end
