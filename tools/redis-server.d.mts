/** The path of a redis-server that is there already; undefined if there is none. */
export function findRedisServer(env?: NodeJS.ProcessEnv): string | undefined

/** The same, after bringing one into the cache folder if need be. Throws an error whose message is one line. */
export function ensureRedisServer(env?: NodeJS.ProcessEnv): Promise<string>
