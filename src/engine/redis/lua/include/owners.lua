-- Whether a field can be an owner: a client's UUID and a number, and what Redisson appends to it.
local function isOwner(field)
  local rest = string.match(field, '^%x+%-%x+%-%x+%-%x+%-%x+:%d+(.*)$')
  return rest and (rest == '' or rest == ':write' or string.find(rest, '^:%x+$'))
end

-- The first holder of a lock's hash, or nil when a field is not an owner: then the hash is somebody's data, or, where
-- there is a mode, another kind of lock (`moded`: one that has it). A look at the first fields tells, so a huge hash
-- costs no more.
local function firstOwner(lock, moded)
  if not moded and redis.call('hexists', lock, 'mode') == 1 then
    return nil
  end
  local found
  local fields = redis.call('hscan', lock, '0', 'count', '64')[2]
  for i = 1, #fields, 2 do
    local field = fields[i]
    if isOwner(field) then
      found = found or field
    elseif field ~= 'mode' then
      return nil
    end
  end
  return found
end
