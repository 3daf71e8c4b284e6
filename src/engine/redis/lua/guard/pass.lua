-- Reads, writes or removes a guarded value under a fencing token. Every step raises the floor to its token, reads too.
-- KEYS: guarded
-- ARGV: token:integer, step:string, value:string
-- RETURNS 1: passed values:string...
-- RETURNS 0: stale floor:string
-- RETURNS -3: foreign
-- INCLUDE: token-text
local guarded, step = KEYS[1], ARGV[2]
local found = redis.call('hget', guarded, 'token')
local floor = tokenIn(found or '0')
-- A hash with other fields is somebody's data, even if one of them is called token.
local own = (found and 1 or 0) + redis.call('hexists', guarded, 'value')
if not floor or not found and own > 0 or redis.call('hlen', guarded) ~= own then
  return -3
end
if tonumber(ARGV[1]) < floor then
  return {0, found}
end
local value = step == 'read' and redis.call('hget', guarded, 'value')
if step == 'write' then
  redis.call('hset', guarded, 'token', ARGV[1], 'value', ARGV[3])
elseif tonumber(ARGV[1]) > floor then
  redis.call('hset', guarded, 'token', ARGV[1])
end
if step == 'remove' then
  redis.call('hdel', guarded, 'value')
end
local reply = {1}
if value then
  reply[2] = value
end
return reply
