-- Ends one owner of several locks: removes its fields, and tells one waiter of each lock.
-- KEYS: keys...
-- ARGV: owner:string, entombMs:integer, publish:string, channels:string...
-- RETURNS: results:integer...

-- The first half of the keys are the locks, the second half their tombstones.
local owner = ARGV[1]
local size = #KEYS / 2
local results = {}

for i = 1, size do
  local lock = KEYS[i]
  -- HDEL removes the key with its last field, and is a write that a full server allows.
  local found = redis.pcall('hdel', lock, owner)
  if found == 0 then
    -- What is left of a minimum hold.
    found = redis.call('hdel', lock, owner .. ':0')
  end
  if type(found) == 'table' then
    results[i] = -3
  elseif found == 1 then
    results[i] = 1
  else
    results[i] = redis.call('exists', lock) == 1 and -1 or 0
  end
end

if ARGV[2] ~= '0' then
  for i = 1, size do
    if results[i] ~= -3 then
      -- A full server allows DEL, and after a first write the script may go on to SET.
      redis.call('del', KEYS[size + i])
      redis.call('set', KEYS[size + i], '1', 'px', ARGV[2])
    end
  end
end

for i = 1, size do
  if results[i] == 1 and type(redis.pcall(ARGV[3], ARGV[3 + i], '0')) == 'table' then
    results[i] = 2
  end
end
return results
