// Builds the program in interop/ with one version of Redisson into the cache folder. Needs Java 17, Maven and, the
// first time, the network. As a program: builds those named, or all.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'

export const REDISSON_VERSIONS = ['4.7.0', '3.52.0', '3.18.0']

const project = fileURLToPath(new URL('../interop', import.meta.url))
const OLDEST_JAVA = 17
const BUILD_MS = 300_000
// What Maven says when the registry is out of reach, or does not have it, and nothing is in its own store.
const NOT_TO_BE_HAD =
  /could not (transfer|find artifact|resolve)|non-resolvable|offline mode|not be resolved|UnknownHost/i

export class PeerMissing extends Error {}

export function ensureRedissonPeer(version, env = process.env) {
  const java = findJava(env)
  const folder = join(cacheFolder(env), `redisson-peer-${version}-${fingerprint()}`)
  if (!existsSync(folder)) build(version, folder, { env, maven: findMaven() })
  const classPath = [join(folder, 'classes'), join(folder, 'lib', '*')].join(delimiter)
  // Little memory, and a quick start.
  const flags = ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-XX:-UsePerfData']
  return { version, java, args: [...flags, '-cp', classPath, 'holdfast.interop.Main'] }
}

function cacheFolder(env) {
  return env.HOLDFAST_CACHE || join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'holdfast')
}

function findJava(env) {
  const java = env.JAVA_HOME ? join(env.JAVA_HOME, 'bin', 'java') : 'java'
  const { stderr, error } = spawnSync(java, ['-version'], { encoding: 'utf8' })
  const [, version] = /version "(\d+)/.exec(stderr ?? '') ?? []
  if (error !== undefined || version === undefined) throw new PeerMissing('there is no Java')
  if (Number(version) < OLDEST_JAVA) throw new PeerMissing(`Java is ${version}, not ${OLDEST_JAVA} or newer`)
  return java
}

function findMaven() {
  if (spawnSync('mvn', ['--version']).status !== 0) throw new PeerMissing('there is no Maven')
  return 'mvn'
}

/** Changes with the sources, so that a cached build is never an old one. */
function fingerprint() {
  const files = readdirSync(project, { recursive: true }).filter((name) => /\.java$|^pom\.xml$/.test(name))
  const hash = createHash('sha256')
  for (const name of files.sort()) hash.update(name).update(readFileSync(join(project, name)))
  return hash.digest('hex').slice(0, 12)
}

function build(version, folder, { env, maven }) {
  mkdirSync(cacheFolder(env), { recursive: true })
  const work = mkdtempSync(join(cacheFolder(env), '.build-'))
  try {
    const settings = [`-Dredisson.version=${version}`, `-Dpeer.folder=${work}`]
    const args = ['-B', '-q', '-Dstyle.color=never', '-f', join(project, 'pom.xml'), ...settings, 'compile']
    const { status, stdout, stderr, error } = spawnSync(maven, args, { encoding: 'utf8', timeout: BUILD_MS })
    if (status !== 0) throw failure(version, error?.message ?? `${stdout}\n${stderr}`)
    publish(work, folder)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function failure(version, printed) {
  const output = stripVTControlCharacters(printed)
  const lines = output.split('\n').filter((line) => line.includes('ERROR'))
  const cause = (lines[0] ?? output).replace(/\[ERROR\]/, '').trim()
  if (NOT_TO_BE_HAD.test(output) || /ETIMEDOUT/.test(output))
    return new PeerMissing(`Maven could not get Redisson ${version} (${cause.slice(0, 200)})`)
  return new Error(`the Redisson peer does not build: ${lines.join('\n') || output}`)
}

function publish(work, folder) {
  try {
    renameSync(work, folder)
  } catch (error) {
    // Somebody else was faster, and theirs is as good.
    if (!existsSync(folder)) throw error
  }
  const other = `${folder.slice(0, folder.lastIndexOf('-'))}-`
  for (const name of readdirSync(join(folder, '..'))) {
    const path = join(folder, '..', name)
    if (path.startsWith(other) && path !== folder) rmSync(path, { recursive: true, force: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const named = process.argv.slice(2)
  for (const version of named.length > 0 ? named : REDISSON_VERSIONS) {
    console.log(`Redisson ${version}: ${ensureRedissonPeer(version).args[5]}`)
  }
}
