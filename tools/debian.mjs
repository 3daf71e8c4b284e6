// Brings programs from Debian's packages into the cache folder without installing anything.
// Needs nothing but Node's built-ins and apt on a Debian-like system.
import { execFile, spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, mkdirSync, mkdtempSync } from 'node:fs'
import { readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const APT_TRIES = 24
const APT_PAUSE_MS = 5_000

/** A folder of the cache. Its name carries the architecture: a cache may be shared by machines of different kinds. */
export function cached(name, env) {
  const cache = env.HOLDFAST_CACHE || join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'holdfast')
  return resolve(cache, `${name}-${process.arch}`)
}

/** The folders of the path. */
export function pathFolders(env) {
  return (env.PATH ?? '').split(delimiter).filter((folder) => folder !== '')
}

export function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

/**
 * Unpacks `packages`, and those that they need and this system lacks, into `target`/root. `finish` completes the folder
 * before anybody sees it; `isWhole` tells whether somebody else's is. `what` and `advice` are for messages.
 */
export async function bring({ what, advice, packages, target, finish, isWhole }) {
  if (process.platform !== 'linux' || !existsSync('/usr/bin/apt-get')) {
    throw new Error(`no ${what} found, and no apt-get to bring it: ${advice}`)
  }
  if (process.getuid() !== 0) throw new Error(`no ${what} found, and not root to bring it: ${advice}`)
  mkdirSync(dirname(target), { recursive: true })
  const work = mkdtempSync(join(dirname(target), '.unpack-'))
  try {
    await download(join(work, 'archives'), { what, advice, packages })
    unpack(join(work, 'archives'), join(work, 'ready', 'root'), advice)
    finish(join(work, 'ready'))
    publish(join(work, 'ready'), target, isWhole)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

async function download(archives, { what, advice, packages }) {
  const apt = aptFor(what, advice)
  mkdirSync(join(archives, 'partial'), { recursive: true })
  await apt(['update'])
  // Gets the packages (also where one is installed already) and those of their libraries that this system lacks.
  const how = ['--yes', '--download-only', '--reinstall', '--no-install-recommends']
  await apt(['install', ...how, '-o', `Dir::Cache::archives=${archives}`, ...packages])
}

function aptFor(what, advice) {
  return async (args) => {
    const options = ['-qq', '-o', 'DPkg::Lock::Timeout=120', '-o', 'APT::Sandbox::User=root', ...args]
    for (let tries = 1; ; tries++) {
      const { error, output } = await run('apt-get', options)
      if (error === null) return
      // The time-out above does not cover the locks of the package lists and of the archives.
      if (tries === APT_TRIES || !/could not get lock|unable to lock/i.test(output)) {
        const cause = output.split('\n').find((line) => line.startsWith('E:')) ?? error.message.split('\n')[0]
        throw new Error(`no ${what} found, and apt-get ${args[0]} failed (${cause.trim()}): ${advice}`)
      }
      await sleep(APT_PAUSE_MS)
    }
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

function unpack(archives, root, advice) {
  mkdirSync(root, { recursive: true })
  const packages = readdirSync(archives).filter((name) => name.endsWith('.deb'))
  for (const name of packages) {
    const { status, stderr } = spawnSync('dpkg-deb', ['-x', join(archives, name), root], { encoding: 'utf8' })
    if (status !== 0) throw new Error(`could not unpack ${name} (${String(stderr).trim()}): ${advice}`)
  }
}

/** Writes a script into `folder` that starts a program below its root, with the libraries beside it. */
export function writeWrapper(folder, program) {
  const libraries = libraryFolders(join(folder, 'root')).map((path) => `$here/root/${path}`)
  const lines = [
    '#!/bin/sh',
    'here=$(cd "$(dirname "$0")" && pwd)',
    `LD_LIBRARY_PATH="${libraries.join(':')}\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"`,
    'export LD_LIBRARY_PATH',
    `exec "$here/root/${program}" "$@"`,
  ]
  writeFileSync(join(folder, program.split('/').at(-1)), `${lines.join('\n')}\n`, { mode: 0o755 })
}

/** Every folder that holds a shared library, below `root`. */
function libraryFolders(root) {
  const found = new Set()
  for (const entry of readdirSync(root, { recursive: true })) {
    if (/\.so(\.\d+)*$/.test(entry)) found.add(dirname(entry))
  }
  return [...found].sort()
}

/** Throws unless the program tells its version. */
export function checkRuns(program, { what, advice, pattern }) {
  const { status, stdout, stderr } = spawnSync(program, ['--version'], { encoding: 'utf8' })
  if (status === 0 && pattern.test(stdout)) return
  const cause = String(stderr).trim().split('\n')[0]
  throw new Error(`the ${what} that apt brought does not start (${cause}): ${advice}`)
}

function publish(ready, target, isWhole) {
  try {
    renameSync(ready, target)
  } catch (error) {
    // Somebody else was faster, and theirs is as good; or there is a broken one.
    if (!existsSync(target)) throw error
    if (isWhole()) return
    rmSync(target, { recursive: true, force: true })
    renameSync(ready, target)
  }
}
