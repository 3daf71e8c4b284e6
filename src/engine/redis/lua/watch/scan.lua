-- Takes a step through all keys that fit a pattern. The pattern stands among the keys, where rights are judged.
-- KEYS: pattern
-- ARGV: cursor:string, count:integer
-- RETURNS 1: scanned cursor:string keys:string...
local found = redis.call('scan', ARGV[1], 'match', KEYS[1], 'count', ARGV[2])
local reply = {1, found[1]}
for _, key in ipairs(found[2]) do
  reply[#reply + 1] = key
end
return reply
