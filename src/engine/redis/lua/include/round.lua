-- Notes that another round of a latch begins, so that nothing that was counted in the one before is undone in it.
local function turn(round, request, ms)
  redis.call('del', round)
  redis.call('hset', round, 'id', string.match(request, '[^:]*$'))
  redis.call('pexpire', round, ms)
end
