-- Counts a latch down by one. At zero the key goes, and everybody is told that the latch is open.
-- KEYS: latch, request, round
-- ARGV: requestMs:integer, channel:string, publish:string
-- RETURNS 1: counted left:string
-- RETURNS 2: unannounced
-- RETURNS -2: dead
-- RETURNS -3: foreign
-- INCLUDE: whole
-- INCLUDE: round
local latch, request, round = KEYS[1], KEYS[2], KEYS[3]
local note = redis.call('get', request)
if note == 'ended' then
  return -2
end
if note then
  return {1, string.match(note, '^%d+') or '0'}
end
local value = redis.call('get', latch)
local count = whole(value or '0')
if not count then
  return -3
end
-- A full server allows DEL, and after a first write the script may go on to SET.
redis.call('del', request)
if count > 1 then
  redis.call('decr', latch)
  -- As text, since clients read the largest integers wrongly.
  local left = string.format('%.0f', count - 1)
  local id = redis.call('hget', round, 'id')
  redis.call('set', request, id and left .. ' ' .. id or left, 'px', ARGV[1])
  return {1, left}
end
redis.call('del', latch)
redis.call('set', request, 'open', 'px', ARGV[1])
if count == 1 then
  turn(round, request, ARGV[1])
  local published = redis.pcall(ARGV[3], ARGV[2], '0')
  if type(published) == 'table' then
    return 2
  end
end
return {1, '0'}
