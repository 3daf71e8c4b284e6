// Runs the demo, the tests and the like from a fresh clone: brings what is missing first. Built-ins only.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { ensureDependencies } from './dependencies.mjs'
import { ensureRedisServer } from './redis-server.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))

const commands = {
  demo: { run: ['demo/main.ts'], needsServer: (args) => !bringsOwnServer(args) },
  bench: { run: ['bench/run.ts'], needsServer: (args) => !bringsOwnServer(args), needsBuild: true },
  safety: { run: ['test/safety/run.ts'], needsServer: (args) => !asksForHelp(args) },
  examples: { run: ['tools/examples.mjs'], needsServer: () => true },
  interop: { run: ['tools/test.mjs', '--interop'], needsServer: () => true },
  test: { run: ['tools/test.mjs'], needsServer: () => true },
}

function asksForHelp(args) {
  return args.some((arg) => ['--help', '-h', 'help'].includes(arg))
}

function bringsOwnServer(args) {
  if (process.env.REDIS_URL) return true
  return asksForHelp(args) || args.some((arg) => /^--(memory|url)(=|$)/.test(arg))
}

/** Runs a program of ours, TypeScript or not, and resolves with its exit code. */
function start(args) {
  const child = spawn(process.execPath, ['--import', 'tsx', ...args], { cwd: root, stdio: 'inherit' })
  // The terminal sends these to the child too, which ends in its own way; we only follow.
  for (const signal of ['SIGINT', 'SIGHUP']) process.on(signal, () => undefined)
  process.on('SIGTERM', () => child.kill('SIGTERM'))
  return new Promise((done) => {
    child.once('exit', (code, signal) => done(code ?? (signal === 'SIGINT' ? 130 : 1)))
  })
}

async function main([name = '', ...args]) {
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (command === undefined) {
    console.error(`usage: node tools/run.mjs ${Object.keys(commands).join(' | ')} [arguments]`)
    return 2
  }
  if (!ensureDependencies()) return 1
  if (command.needsServer(args)) process.env.HOLDFAST_REDIS_SERVER = await ensureRedisServer()
  if (command.needsBuild && !asksForHelp(args) && (await start(['tools/build.mjs', '--if-stale'])) !== 0)
    return 1
  return start([...command.run, ...args])
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  console.error(`holdfast: ${error.message}`)
  process.exitCode = 1
}
