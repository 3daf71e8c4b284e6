-- Takes the lock from the owners that the caller has seen, and from nobody else. Nobody is told.
-- KEYS: lock
-- ARGV: owners:string...
-- RETURNS 1: freed
-- RETURNS 0: none
local removed = 0
for _, owner in ipairs(ARGV) do
  removed = removed + redis.call('hdel', KEYS[1], owner)
end
return removed > 0 and 1 or 0
