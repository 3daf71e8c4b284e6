// Runs every example on a private server of its own; each must end by itself with code 0.
import { spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startRedis } from '../test/support/server.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = join(root, 'examples')
const LIMIT_MS = 60_000

function run(file, url) {
  const env = { ...process.env, REDIS_URL: url }
  const child = spawn(process.execPath, ['--import', 'tsx', join('examples', file)], { cwd: root, env })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const timer = setTimeout(() => {
    output += `still running after ${LIMIT_MS / 1_000} s\n`
    child.kill('SIGKILL')
  }, LIMIT_MS)
  return new Promise((done) => {
    child.once('close', (code) => {
      clearTimeout(timer)
      done({ ok: code === 0, output })
    })
  })
}

async function tryOut(file) {
  const server = await startRedis()
  try {
    const { ok, output } = await run(file, server.url)
    console.log(ok ? `ok      ${file}` : `FAILED  ${file}\n${output}`)
    return ok
  } finally {
    await server.stop()
  }
}

const wanted = process.argv.slice(2)
const files = existsSync(folder) ? readdirSync(folder).sort() : []
const failures = []
for (const file of files.filter((name) => /^(?!_).+\.(ts|mjs|cjs|js)$/.test(name))) {
  if (wanted.length > 0 && !wanted.some((word) => file.includes(word))) continue
  if (!(await tryOut(file))) failures.push(file)
}
if (failures.length > 0) process.exitCode = 1
