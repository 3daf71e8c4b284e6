-- Reads the highest token that was given; 0: none yet.
-- KEYS: token
-- ARGV:
-- RETURNS 1: known token:string
-- RETURNS -4: badToken
-- INCLUDE: token-text
-- INCLUDE: tokens
local token = lastToken(KEYS[1])
if not token then
  return -4
end
return {1, string.format('%.0f', token)}
