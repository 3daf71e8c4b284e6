import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'

const src = fileURLToPath(new URL('../../src', import.meta.url))

interface Import {
  readonly from: string
  /** A file of src, or the name of a package. */
  readonly to: string
  readonly inside: boolean
  readonly typeOnly: boolean
}

/** Which layers a layer may import from; those after `types:` only as types. */
const allowed: Record<string, string> = {
  index: 'holdfast locks synchronizers guards watch lease contract memory redis clients base',
  cli: 'cli index holdfast base',
  holdfast: 'holdfast locks synchronizers watch lease contract memory redis clients base',
  locks: 'locks lease base',
  synchronizers: 'synchronizers locks lease contract base',
  guards: 'guards redis clients base',
  watch: 'watch locks lease contract base',
  lease: 'lease contract base',
  contract: 'contract base',
  model: 'model types: contract',
  memory: 'memory model contract base',
  redis: 'redis clients contract base',
  clients: 'clients base',
  base: 'base',
}

const libraries = /^(ioredis|redis|@redis\/|@valkey\/)/

function layerOf(file: string): string {
  if (file === 'index.ts' || file === 'holdfast.ts') return file.slice(0, -3)
  if (!file.includes('/')) return 'base'
  const [top = '', second, third] = file.split('/')
  if (top !== 'engine') return top
  if (third === undefined || second === 'operations') return 'contract'
  return second === 'redis' && third === 'clients' ? 'clients' : String(second)
}

function importsOf(file: string): Import[] {
  const source = ts.createSourceFile(
    file,
    readFileSync(join(src, file), 'utf8'),
    ts.ScriptTarget.Latest,
    true,
  )
  const found: Import[] = []
  const add = (specifier: ts.Node | undefined, typeOnly: boolean): void => {
    if (specifier === undefined || !ts.isStringLiteral(specifier)) return
    const inside = specifier.text.startsWith('.')
    const path = join(dirname(file), specifier.text.replace(/\.js$/, '.ts'))
    found.push({ from: file, to: inside ? toSlashes(path) : specifier.text, inside, typeOnly })
  }
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) add(node.moduleSpecifier, isTypeOnly(node.importClause))
    if (ts.isExportDeclaration(node)) add(node.moduleSpecifier, node.isTypeOnly)
    if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) add(node.argument.literal, true)
    if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      add(node.arguments[0], false)
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

function isTypeOnly(clause: ts.ImportClause | undefined): boolean {
  if (clause === undefined) return false
  const { namedBindings } = clause
  if (clause.phaseModifier === ts.SyntaxKind.TypeKeyword) return true
  if (clause.name !== undefined || namedBindings === undefined || !ts.isNamedImports(namedBindings))
    return false
  return namedBindings.elements.every((element) => element.isTypeOnly)
}

function toSlashes(path: string): string {
  return normalize(path).split(sep).join('/')
}

function isAllowed({ from, to, typeOnly }: Import): boolean {
  const [always = '', asTypes = ''] = (allowed[layerOf(from)] ?? '').split('types:')
  const layer = layerOf(to)
  return always.split(' ').includes(layer) || (typeOnly && asTypes.split(' ').includes(layer))
}

/** The files of a cycle in the order of import, or undefined. */
function findCycle(edges: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const done = new Set<string>()
  const path: string[] = []
  const walk = (file: string): string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file]
    if (done.has(file)) return undefined
    path.push(file)
    for (const next of edges.get(file) ?? []) {
      const cycle = walk(next)
      if (cycle !== undefined) return cycle
    }
    path.pop()
    done.add(file)
    return undefined
  }
  for (const file of edges.keys()) {
    const cycle = walk(file)
    if (cycle !== undefined) return cycle
  }
  return undefined
}

const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .map(toSlashes)
  .filter((file) => file.endsWith('.ts'))
const imports = files.flatMap(importsOf)
const show = ({ from, to }: Import): string => `${from} imports ${to}`

describe('the sources', () => {
  it('lie in folders whose layer is known', () => {
    expect(files.filter((file) => allowed[layerOf(file)] === undefined)).toEqual([])
  })

  it('import down the layers only', () => {
    expect(
      imports
        .filter(({ inside }) => inside)
        .filter((entry) => !isAllowed(entry))
        .map(show),
    ).toEqual([])
  })

  it('have no cycle of run-time imports', () => {
    const running = imports.filter(({ inside, typeOnly }) => inside && !typeOnly)
    const edges = new Map(
      files.map((file) => [file, running.filter(({ from }) => from === file).map(({ to }) => to)]),
    )
    expect(findCycle(edges)).toBeUndefined()
  })

  it('name client libraries in the adapters only', () => {
    const naming = imports.filter(({ to }) => libraries.test(to))
    expect(naming.filter(({ from }) => layerOf(from) !== 'clients').map(show)).toEqual([])
  })

  it('need no package at run time but the client library that is asked for', () => {
    const packages = imports.filter(({ inside, typeOnly }) => !inside && !typeOnly)
    expect(packages.filter(({ to }) => !to.startsWith('node:') && !libraries.test(to)).map(show)).toEqual([])
  })

  it('keep the model pure', () => {
    const outside = imports.filter(({ from, inside }) => layerOf(from) === 'model' && !inside)
    expect(outside.map(show)).toEqual([])
  })
})

describe('the search for cycles', () => {
  it('finds one behind a harmless entry', () => {
    const edges = new Map([
      ['a', ['b', 'c']],
      ['b', []],
      ['c', ['d']],
      ['d', ['c']],
    ])
    expect(findCycle(edges)).toEqual(['c', 'd', 'c'])
  })
})
