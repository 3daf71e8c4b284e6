-- Ends a writer, or leaves the lock shut for the rest of its minimum hold, and tells all waiters. Reads inside the
-- write go on, and others may join them; then the rest is one of them, and keeps writers out.
-- KEYS: lock, tombstone
-- ARGV: owner:string, channel:string, publish:string, keepMs:integer, entombMs:integer
-- RETURNS 1: released
-- RETURNS 2: unannounced
-- RETURNS 0: gone
-- RETURNS -1: taken
-- INCLUDE: readers
-- INCLUDE: settle
-- INCLUDE: writers
local lock, keepMs = KEYS[1], tonumber(ARGV[4])
-- What is left of a minimum hold stands under a name that no late renewal raises and no late copy of this call finds again.
local rest = ARGV[1] .. ':00'
-- HDEL is a write that a full server allows; after it the script may go on to others.
local found = redis.call('hdel', lock, ARGV[1] .. ':write')
local told = found
if keepMs > 0 and found == 0 then
  found = redis.call('hexists', lock, rest)
elseif found == 0 then
  found = redis.call('hdel', lock, rest)
  redis.call('del', holdKey(lock, rest, 1))
  told = found
elseif keepMs > 0 then
  local alone = redis.call('hlen', lock) == 1
  redis.call('hset', lock, rest, '1')
  if alone then
    redis.call('pexpire', lock, ARGV[4])
  else
    redis.call('set', holdKey(lock, rest, 1), '1', 'px', ARGV[4])
    if redis.call('pttl', lock) < keepMs then
      redis.call('pexpire', lock, ARGV[4])
    end
    endWriting(lock)
  end
end
if told == 1 and keepMs == 0 then
  endWriting(lock)
end
if ARGV[5] ~= '0' then
  -- A full server allows DEL, and after a first write the script may go on to SET.
  redis.call('del', KEYS[2])
  redis.call('set', KEYS[2], '1', 'px', ARGV[5])
end
if found == 0 then
  return redis.call('exists', lock) == 1 and -1 or 0
end
if told == 1 and not tellAll(ARGV[3], ARGV[2]) then
  return 2
end
return 1
