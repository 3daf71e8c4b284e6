-- Looks at keys, each in four words: type, fingerprint, whether all of the value went into it, rest of its life.
-- Stops early when much was read, so that nobody else waits long.
-- KEYS: keys...
-- ARGV: exactBytes:integer, budgetBytes:integer
-- RETURNS: values:string...
-- INCLUDE: fingerprint
local limit, left = tonumber(ARGV[1]), tonumber(ARGV[2])
local values = {}
for _, key in ipairs(KEYS) do
  local kind = redis.call('type', key).ok
  local mark, exact = '', '1'
  if kind ~= 'none' then
    local size = sizeOf(key, kind)
    if kind ~= 'stream' and size <= limit then
      mark = whole(key, kind)
      left = left - size
    else
      mark = sample(key, kind)
      exact = '0'
    end
  end
  values[#values + 1] = kind
  values[#values + 1] = mark
  values[#values + 1] = exact
  values[#values + 1] = string.format('%.0f', redis.call('pttl', key))
  if left <= 0 then
    break
  end
end
return values
