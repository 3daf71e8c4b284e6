-- Tells which run of which server this is, and whose data it has.
-- KEYS: name
-- ARGV:
-- RETURNS 1: known runId:string dataId:string

-- The key only leads the call to its node.
local _ = KEYS[1]
local server = redis.call('info', 'server')
local replication = redis.call('info', 'replication')
return {1, string.match(server, 'run_id:(%x+)') or '', string.match(replication, 'master_replid:(%x+)') or ''}
