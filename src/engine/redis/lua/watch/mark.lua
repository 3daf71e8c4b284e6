-- Notes what the handlers of a watch have handled: field and text in turn; an empty text removes the field.
-- KEYS: marks
-- ARGV: ttlMs:integer, notes:string...
-- RETURNS 1: marked
local marks = KEYS[1]
for i = 2, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    redis.call('hdel', marks, ARGV[i])
  else
    redis.call('hset', marks, ARGV[i], ARGV[i + 1])
  end
end
if redis.call('pttl', marks) < tonumber(ARGV[1]) then
  redis.call('pexpire', marks, ARGV[1])
end
return 1
