/** The folder of `initdb` and `postgres`, if they are there already; undefined if not. */
export function findPostgres(env?: NodeJS.ProcessEnv): string | undefined

/** The same, after bringing them into the cache folder if need be. Throws an error whose message is one line. */
export function ensurePostgres(env?: NodeJS.ProcessEnv): Promise<string>
