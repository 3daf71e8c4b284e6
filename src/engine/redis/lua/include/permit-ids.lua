-- The ids among the arguments, from this one on.
local function rawIds(first)
  local ids = {}
  for i = first, #ARGV do
    ids[i - first + 1] = raw(ARGV[i])
  end
  return ids
end
