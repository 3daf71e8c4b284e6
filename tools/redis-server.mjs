// Finds a redis-server, or brings one into the cache folder without installing anything.
// Needs nothing but Node's built-ins and, to bring one, apt on a Debian-like system.
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bring, cached, checkRuns, isExecutable, pathFolders, writeWrapper } from './debian.mjs'

// The server's program is in the second one, the first has a link to it.
const PACKAGES = ['redis-server', 'redis-tools']
const USUAL_FOLDERS = ['/usr/local/bin', '/usr/bin']
const MESSAGES = {
  what: 'redis-server',
  advice: 'install redis-server 7.0 or newer, or set HOLDFAST_REDIS_SERVER=path',
}

export function findRedisServer(env = process.env) {
  if (env.HOLDFAST_REDIS_SERVER) return resolve(env.HOLDFAST_REDIS_SERVER)
  const folders = [...pathFolders(env), ...USUAL_FOLDERS]
  return [...folders.map((folder) => join(folder, 'redis-server')), cachedServer(env)].find(isExecutable)
}

export async function ensureRedisServer(env = process.env) {
  const found = findRedisServer(env)
  if (found === undefined) return bringServer(cachedServer(env))
  if (isExecutable(found)) return found
  throw new Error(`HOLDFAST_REDIS_SERVER=${found} is not an executable file; ${MESSAGES.advice}`)
}

function cachedServer(env) {
  return join(cached('redis-server', env), 'redis-server')
}

async function bringServer(server) {
  const finish = (folder) => {
    writeWrapper(folder, 'usr/bin/redis-server')
    checkRuns(join(folder, 'redis-server'), { ...MESSAGES, pattern: /v=\d/ })
  }
  const isWhole = () => isExecutable(server)
  await bring({ ...MESSAGES, packages: PACKAGES, target: dirname(server), finish, isWhole })
  return server
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    console.log(await ensureRedisServer())
  } catch (error) {
    console.error(error.message)
    process.exitCode = 1
  }
}
