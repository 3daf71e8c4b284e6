/** Redisson itself, ready to be started. */
export interface RedissonPeer {
  readonly version: string
  readonly java: string
  /** Arguments for Java, up to and including the name of the program; settings go before them as `-Dname=value`. */
  readonly args: readonly string[]
}

/** The versions that are tried: the newest 4.x and 3.x, and an old one. */
export const REDISSON_VERSIONS: readonly ['4.7.0', '3.52.0', '3.18.0']

/** Why the peer cannot be had here, where that is no fault of the code. */
export class PeerMissing extends Error {}

/** Builds the peer into the cache folder if need be. @throws PeerMissing without Java 17, Maven or the network */
export function ensureRedissonPeer(version: string, env?: NodeJS.ProcessEnv): RedissonPeer
