// Finds the programs of PostgreSQL, or brings them into the cache folder without installing anything or starting a
// service. Needs nothing but Node's built-ins and, to bring them, apt on a Debian-like system.
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bring, cached, checkRuns, isExecutable, pathFolders, writeWrapper } from './debian.mjs'

const PROGRAMS = ['initdb', 'postgres']
// Debian keeps the versions side by side.
const VERSIONS = 'usr/lib/postgresql'
const MESSAGES = {
  what: 'PostgreSQL',
  advice: 'install postgresql 13 or newer, or set HOLDFAST_POSTGRES=folder of initdb and postgres',
}

export function findPostgres(env = process.env) {
  if (env.HOLDFAST_POSTGRES) return resolve(env.HOLDFAST_POSTGRES)
  return [...pathFolders(env), ...versionFolders('/'), cached('postgres', env)].find(isWhole)
}

export async function ensurePostgres(env = process.env) {
  const found = findPostgres(env)
  if (found === undefined) return bringPostgres(cached('postgres', env))
  if (isWhole(found)) return found
  throw new Error(`HOLDFAST_POSTGRES=${found} has no initdb and postgres; ${MESSAGES.advice}`)
}

function isWhole(folder) {
  return PROGRAMS.every((program) => isExecutable(join(folder, program)))
}

/** The folders of programs below `root`, the newest version first. */
function versionFolders(root) {
  const folder = join(root, VERSIONS)
  const versions = existsSync(folder) ? readdirSync(folder).sort((a, b) => Number(b) - Number(a)) : []
  return versions.map((version) => join(folder, version, 'bin'))
}

export async function bringPostgres(target, packages = ['postgresql']) {
  const finish = (folder) => {
    const root = join(folder, 'root')
    dropCompiler(root)
    const [programs = ''] = versionFolders(root)
    for (const program of PROGRAMS) writeWrapper(folder, join(programs, program).slice(root.length + 1))
    checkRuns(join(folder, 'postgres'), { ...MESSAGES, pattern: /PostgreSQL/ })
  }
  await bring({ ...MESSAGES, packages, target, finish, isWhole: () => isWhole(target) })
  return target
}

/** Most of what comes along compiles queries to machine code; the server does without when told so. */
function dropCompiler(root) {
  for (const entry of readdirSync(root, { recursive: true })) {
    if (/libLLVM[^/]*$/.test(entry)) rmSync(join(root, entry), { force: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    console.log(await ensurePostgres())
  } catch (error) {
    console.error(error.message)
    process.exitCode = 1
  }
}
