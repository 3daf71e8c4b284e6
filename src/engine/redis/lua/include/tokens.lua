-- The highest token that was given; nil when the key holds anything else, or more than can be told exactly.
local function lastToken(key)
  local value = redis.pcall('get', key) or '0'
  if type(value) == 'table' and string.find(value.err, 'WRONGTYPE', 1, true) then
    return nil
  elseif type(value) == 'table' then
    -- Not the key's fault: it fails as it would have at first.
    value = redis.call('get', key)
  end
  return tokenIn(value)
end
