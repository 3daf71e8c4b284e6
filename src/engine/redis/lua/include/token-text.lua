-- The number that a text is, if it is written as a token would be and can be told exactly; else nil.
local function tokenIn(text)
  local canonical = text == '0' or string.find(text, '^[1-9]%d*$')
  local token = canonical and tonumber(text)
  return token and token <= 9007199254740991 and token or nil
end
