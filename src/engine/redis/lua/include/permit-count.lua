-- The largest number that a double holds exactly.
local MOST = 9007199254740991

-- The number under the count's key; false: there is none, nil: it is somebody's data.
local function read(count)
  local text = redis.call('get', count)
  return text and whole(text)
end

-- As text, since clients read the largest integers wrongly.
local function exact(number)
  return string.format('%.0f', number)
end

-- So many permits are available again; returns how many are then. A number that somebody has set too high stays where
-- it can be counted.
local function giveBack(count, available, permits)
  return redis.call('incrby', count, math.min(permits, MOST - available))
end

-- Whether the message to the waiters was published. Never a negative number: Java's listeners break on it.
local function announce(publish, channel, permits)
  return type(redis.pcall(publish, channel, math.max(permits, 0))) ~= 'table'
end
