-- Fingerprints of values of any type.

local COUNT = {list = 'llen', set = 'scard', zset = 'zcard', hash = 'hlen', stream = 'xlen'}

local function countOf(key, kind)
  return COUNT[kind] and redis.call(COUNT[kind], key) or 0
end

-- Roughly the bytes, without reading them.
local function sizeOf(key, kind)
  if kind == 'string' then
    return redis.call('strlen', key)
  end
  local usage = redis.pcall('memory', 'usage', key, 'samples', 5)
  return type(usage) == 'number' and usage or countOf(key, kind) * 64
end

local function whole(key, kind)
  if kind == 'string' then
    return redis.sha1hex(redis.call('get', key))
  end
  -- Without its last ten bytes, which tell of the server's version.
  return redis.sha1hex(string.sub(redis.call('dump', key), 1, -11))
end

-- The count and both ends, as far as the type has some.
local function sample(key, kind)
  local parts = {tostring(countOf(key, kind))}
  if kind == 'string' then
    parts = {tostring(sizeOf(key, kind)), redis.call('getrange', key, 0, 1023), redis.call('getrange', key, -1024, -1)}
  elseif kind == 'list' then
    parts[2], parts[3] = redis.call('lindex', key, 0), redis.call('lindex', key, -1)
  elseif kind == 'zset' then
    local first, last = redis.call('zrange', key, 0, 0, 'withscores'), redis.call('zrange', key, -1, -1, 'withscores')
    parts[2], parts[3] = table.concat(first, ' '), table.concat(last, ' ')
  elseif kind == 'stream' then
    local info = redis.call('xinfo', 'stream', key)
    for i = 1, #info, 2 do
      if info[i] == 'last-generated-id' or info[i] == 'entries-added' or info[i] == 'max-deleted-entry-id' then
        parts[#parts + 1] = tostring(info[i + 1])
      end
    end
  elseif not COUNT[kind] then
    parts[2] = tostring(sizeOf(key, kind))
  end
  return redis.sha1hex(table.concat(parts, ' '))
end
