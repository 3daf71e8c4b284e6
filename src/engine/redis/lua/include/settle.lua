-- How long the hash of the readers that remain has to last.
local FEW = 4

-- Whether one of a few readers, picked at random, still needs that long. Servers before 6.2 cannot pick.
local function sampled(lock, enoughMs)
  local picked = redis.pcall('hrandfield', lock, FEW, 'withvalues')
  for i = 1, #picked, 2 do
    if longestHold(lock, picked[i], picked[i + 1]) >= enoughMs then
      return true
    end
  end
  return false
end

-- After a reader is gone whose longest hold had `own` left: lets the hash last as long as the longest hold of
-- those that remain, or frees the lock if none does. True: it is free. The cost must not grow with every reader:
-- with many of them the TTL is looked at only if it was the leaving one's, and one that needs nearly as long ends the look.
local function settle(lock, own)
  local left = redis.call('hlen', lock) - 1
  local total = redis.call('pttl', lock)
  -- On old servers time goes on within a script.
  if left > FEW and (total > own + 2 or sampled(lock, own * 0.9)) then
    return false
  end
  local longest, cursor = -2, '0'
  while left > 0 do
    local page = left > FEW and redis.call('hscan', lock, cursor, 'count', '16')
    local fields = page and page[2] or redis.call('hgetall', lock)
    for i = 1, #fields, 2 do
      longest = math.max(longest, longestHold(lock, fields[i], fields[i + 1]))
      if left > FEW and longest >= own * 0.9 then
        return false
      end
    end
    cursor = page and page[1] or '0'
    if cursor == '0' then
      break
    end
  end
  if longest < 1 then
    redis.call('del', lock)
  elseif longest < math.huge and (total < 0 or longest < total) then
    redis.call('pexpire', lock, longest)
  end
  return longest < 1
end
