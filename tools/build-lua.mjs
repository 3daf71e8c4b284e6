// Writes src/engine/redis/scripts.ts: every Lua script as a typed value, checked against its own header.
//
//   node tools/build-lua.mjs            writes
//   node tools/build-lua.mjs --check    fails when the committed file is stale
//   --root <folder>                     another repository root
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { checkChunk, parse, strip } from './lua/body.mjs'
import { emit } from './lua/emit.mjs'
import { readHeader } from './lua/header.mjs'

const MAX_LINES = 60

function readScript(folder, name, problems) {
  const path = `${folder}/${name}.lua`
  const problem = (text, line) => problems.push(`lua/${name}.lua${line ? `:${line}` : ''}: ${text}`)
  const body = readFileSync(path, 'utf8')
  checkLength(body, problem)
  const header = readHeader(body, problem)
  const parts = [...header.includes.map((include) => readInclude(folder, include, problem)), body]
  if (!parse(body, problem)) return undefined
  const offset = parts.length === 1 ? 0 : parts.slice(0, -1).join('\n').split('\n').length
  const atBody = (text, line) => problem(text, line && line > offset ? line - offset : undefined)
  const chunk = parse(parts.join('\n'), problem)
  if (!chunk) return undefined
  checkChunk(chunk, header, atBody)
  return { ...header, name, source: parts.map(strip).join('\n') }
}

function readInclude(folder, include, problem) {
  const path = `${folder}/include/${include}.lua`
  if (!existsSync(path)) {
    problem(`there is no include/${include}.lua`)
    return ''
  }
  const source = readFileSync(path, 'utf8')
  const inside = (text, line) => problem(`include/${include}.lua: ${text}`, line)
  checkLength(source, inside)
  return parse(source, inside) ? source : ''
}

function checkLength(source, problem) {
  const lines = source.trimEnd().split('\n').length
  if (lines > MAX_LINES) problem(`has ${lines} lines; ${MAX_LINES} are allowed`)
}

function readScripts(folder, problems) {
  const objects = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const names = objects
    .filter(({ name }) => name !== 'include')
    .flatMap(({ name }) => readdirSync(`${folder}/${name}`).map((file) => `${name}/${file}`))
  const scripts = names.filter((name) => name.endsWith('.lua')).sort()
  return scripts.map((name) => readScript(folder, name.slice(0, -4), problems))
}

function fail(lines) {
  for (const line of lines) console.error(line)
  process.exit(1)
}

const { values: options } = parseArgs({ options: { check: { type: 'boolean' }, root: { type: 'string' } } })
const engine = `${options.root ?? fileURLToPath(new URL('..', import.meta.url))}/src/engine/redis`
const problems = []
const scripts = readScripts(`${engine}/lua`, problems)
if (problems.length > 0) fail(new Set(problems))

const output = `${engine}/scripts.ts`
const text = emit(scripts)
if (options.check) {
  const current = existsSync(output) ? readFileSync(output, 'utf8') : ''
  if (current !== text) fail(['src/engine/redis/scripts.ts is stale: run node tools/build-lua.mjs'])
} else {
  writeFileSync(output, text)
}
