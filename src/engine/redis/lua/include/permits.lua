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

-- The number under the count's key; false: there is none, nil: it is somebody's text.
local function read(count)
  local text = redis.call('get', count)
  if text and not string.find(text, '^%-?%d+$') then
    return nil
  end
  return text and tonumber(text)
end

-- Whether the message to the waiters was published. Never a negative number: Java's listeners break on it.
local function announce(publish, channel, permits)
  return type(redis.pcall(publish, channel, math.max(permits, 0))) ~= 'table'
end
