-- Reads what the handlers of a watch have handled: fields and texts in turn.
-- KEYS: marks
-- ARGV:
-- RETURNS: marks:string...
return redis.call('hgetall', KEYS[1])
