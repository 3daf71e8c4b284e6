-- Whether a field can be an owner: a client's UUID and a number, and what Redisson appends to it.
local function isOwner(field)
  local rest = string.match(field, '^%x+%-%x+%-%x+%-%x+%-%x+:%d+(.*)$')
  return rest and (rest == '' or rest == ':write' or string.find(rest, '^:%x+$'))
end

-- The first holder of a lock's hash, or nil when a field is neither an owner nor the read/write lock's mode:
-- then the hash is somebody's data. A look at the first fields tells, so a huge hash costs no more.
local function firstOwner(lock)
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
