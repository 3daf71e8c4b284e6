-- Takes a count-down back and notes that it is over, so that a late copy does nothing. What opened the latch stays, and
-- so does what was counted in an earlier round.
-- KEYS: latch, request, round
-- ARGV: requestMs:integer
-- RETURNS 1: undone
-- RETURNS 0: marked
-- INCLUDE: whole
local latch, request, round = KEYS[1], KEYS[2], KEYS[3]
local left, id = string.match(redis.call('get', request) or '', '^(%d+) ?(.*)$')
local value = left and redis.call('get', latch)
local count = value and whole(value)
local now = redis.call('hmget', round, 'id', 'undone')
-- A full server allows DEL, and after a first write the script may go on to SET.
redis.call('del', request)
redis.call('set', request, 'ended', 'px', ARGV[1])
if not count or count < 1 or now[1] and now[1] ~= id then
  return 0
end
-- In one round a count goes up by what is undone only: one that is higher belongs to a round that a peer has begun.
if count > tonumber(left) + tonumber(now[2] or '0') or not whole(string.format('%.0f', count + 1)) then
  return 0
end
redis.call('incr', latch)
redis.call('hincrby', round, 'undone', 1)
redis.call('pexpire', round, ARGV[1])
return 1
