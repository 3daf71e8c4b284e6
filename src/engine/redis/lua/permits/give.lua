-- Gives permits back by their ids, whoever took them: all of them or none, or those that are out.
-- KEYS: count, leases
-- ARGV: channel:string, publish:string, nowMs:integer, all:integer, ids:string...
-- RETURNS 1: released number:integer
-- RETURNS 2: unannounced number:integer
-- RETURNS 0: none
-- RETURNS -3: foreign
-- INCLUDE: permits
-- INCLUDE: whole
-- INCLUDE: permit-count
-- INCLUDE: permit-ids
local count, leases = KEYS[1], KEYS[2]
local pastMs = times(tonumber(ARGV[3]))
local available = read(count)
if available == nil then
  return -3
end
local ids = {}
for _, id in ipairs(rawIds(5)) do
  local score = redis.call('zscore', leases, id)
  -- What has expired is left to whoever wants a permit next.
  if score and tonumber(score) > pastMs then
    ids[#ids + 1] = id
  end
end
local number = #ids
if number == 0 or number < #ARGV - 4 and ARGV[4] == '1' then
  return 0
end
redis.call('zrem', leases, unpack(ids))
if available then
  available = giveBack(count, available, number)
end
local told = announce(ARGV[2], ARGV[1], #ARGV == 5 and available or number)
return {told and 1 or 2, number}
