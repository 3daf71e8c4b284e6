// Finds a redis-server, or brings one into the cache folder without installing anything.
// Needs nothing but Node's built-ins and, to bring one, apt on a Debian-like system.
import { execFile, spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, mkdirSync, mkdtempSync } from 'node:fs'
import { readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

// The server's program is in the second one, the first has a link to it.
const PACKAGES = ['redis-server', 'redis-tools']
const USUAL_FOLDERS = ['/usr/local/bin', '/usr/bin']
const APT_TRIES = 24
const APT_PAUSE_MS = 5_000
const ADVICE = 'install redis-server 7.0 or newer, or set HOLDFAST_REDIS_SERVER=path'

export function findRedisServer(env = process.env) {
  if (env.HOLDFAST_REDIS_SERVER) return resolve(env.HOLDFAST_REDIS_SERVER)
  return [...pathCandidates(env), cachedServer(env)].find(isExecutable)
}

export async function ensureRedisServer(env = process.env) {
  const found = findRedisServer(env)
  if (found === undefined) return bring(env)
  if (isExecutable(found)) return found
  throw new Error(`HOLDFAST_REDIS_SERVER=${found} is not an executable file; ${ADVICE}`)
}

function pathCandidates(env) {
  const folders = (env.PATH ?? '').split(delimiter).filter((folder) => folder !== '')
  return [...folders, ...USUAL_FOLDERS].map((folder) => join(folder, 'redis-server'))
}

function cachedServer(env) {
  const cache = env.HOLDFAST_CACHE || join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'holdfast')
  // The folder's name carries the architecture: a cache may be shared by machines of different kinds.
  return resolve(cache, `redis-server-${process.arch}`, 'redis-server')
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

async function bring(env) {
  if (process.platform !== 'linux' || !existsSync('/usr/bin/apt-get')) {
    throw new Error(`no redis-server found, and no apt-get to bring it: ${ADVICE}`)
  }
  if (process.getuid() !== 0) throw new Error(`no redis-server found, and not root to bring it: ${ADVICE}`)
  const server = cachedServer(env)
  const target = dirname(server)
  mkdirSync(dirname(target), { recursive: true })
  const work = mkdtempSync(join(dirname(target), '.unpack-'))
  try {
    await download(join(work, 'archives'))
    unpack(join(work, 'archives'), join(work, 'ready', 'root'))
    writeWrapper(join(work, 'ready'))
    checkRuns(join(work, 'ready', 'redis-server'))
    publish(join(work, 'ready'), target)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
  return server
}

async function download(archives) {
  mkdirSync(join(archives, 'partial'), { recursive: true })
  await apt(['update'])
  // Gets the packages (also where one is installed already) and those of their libraries that this system lacks.
  const how = ['--yes', '--download-only', '--reinstall', '--no-install-recommends']
  await apt(['install', ...how, '-o', `Dir::Cache::archives=${archives}`, ...PACKAGES])
}

async function apt(args) {
  const options = ['-qq', '-o', 'DPkg::Lock::Timeout=120', '-o', 'APT::Sandbox::User=root', ...args]
  for (let tries = 1; ; tries++) {
    const { error, output } = await run('apt-get', options)
    if (error === null) return
    // The time-out above does not cover the locks of the package lists and of the archives.
    if (tries === APT_TRIES || !/could not get lock|unable to lock/i.test(output)) {
      const cause = output.split('\n').find((line) => line.startsWith('E:')) ?? error.message.split('\n')[0]
      throw new Error(`no redis-server found, and apt-get ${args[0]} failed (${cause.trim()}): ${ADVICE}`)
    }
    await sleep(APT_PAUSE_MS)
  }
}

function run(command, args) {
  const env = { ...process.env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' }
  return new Promise((done) => {
    execFile(command, args, { env, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      done({ error, output: `${stderr}\n${stdout}` })
    })
  })
}

function unpack(archives, root) {
  mkdirSync(root, { recursive: true })
  const packages = readdirSync(archives).filter((name) => name.endsWith('.deb'))
  for (const name of packages) {
    const { status, stderr } = spawnSync('dpkg-deb', ['-x', join(archives, name), root], { encoding: 'utf8' })
    if (status !== 0) throw new Error(`could not unpack ${name} (${String(stderr).trim()}): ${ADVICE}`)
  }
}

/** A script that starts the server in its own process with the libraries beside it. */
function writeWrapper(folder) {
  const libraries = libraryFolders(join(folder, 'root')).map((path) => `$here/root/${path}`)
  const lines = [
    '#!/bin/sh',
    'here=$(cd "$(dirname "$0")" && pwd)',
    `LD_LIBRARY_PATH="${libraries.join(':')}\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"`,
    'export LD_LIBRARY_PATH',
    'exec "$here/root/usr/bin/redis-server" "$@"',
  ]
  writeFileSync(join(folder, 'redis-server'), `${lines.join('\n')}\n`, { mode: 0o755 })
}

/** Every folder that holds a shared library, below `root`. */
function libraryFolders(root) {
  const found = new Set()
  for (const entry of readdirSync(root, { recursive: true })) {
    if (/\.so(\.\d+)*$/.test(entry)) found.add(dirname(entry))
  }
  return [...found].sort()
}

function checkRuns(server) {
  const { status, stdout, stderr } = spawnSync(server, ['--version'], { encoding: 'utf8' })
  if (status === 0 && /v=\d/.test(stdout)) return
  const cause = String(stderr).trim().split('\n')[0]
  throw new Error(`the redis-server that apt brought does not start (${cause}): ${ADVICE}`)
}

function publish(ready, target) {
  try {
    renameSync(ready, target)
  } catch (error) {
    // Somebody else was faster, and theirs is as good; or there is a broken one.
    if (!existsSync(target)) throw error
    if (isExecutable(join(target, 'redis-server'))) return
    rmSync(target, { recursive: true, force: true })
    renameSync(ready, target)
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    console.log(await ensureRedisServer())
  } catch (error) {
    console.error(error.message)
    process.exitCode = 1
  }
}
