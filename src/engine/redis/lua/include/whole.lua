-- The value as a number, or nil where it is not a whole one that a double holds exactly.
local function whole(value)
  if value ~= '0' and not string.find(value, '^-?[1-9]%d*$') then
    return nil
  end
  local number = tonumber(value)
  return number >= -9007199254740991 and number <= 9007199254740991 and number or nil
end
