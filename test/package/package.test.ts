import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Packed, root, type Project } from './consumer.js'

let packed: Packed
let bare: Project

beforeAll(() => {
  packed = new Packed()
  bare = packed.project('bare')
}, 180_000)
afterAll(() => {
  packed[Symbol.dispose]()
})

const print = (expression: string): string => `console.log(JSON.stringify(${expression}))`

function evaluate(file: string, text: string): unknown {
  bare.write(file, text)
  const { status, stdout, stderr } = bare.node(file)
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return JSON.parse(stdout)
}

function exportsOf(file: string, text: string): string[] {
  const names = evaluate(file, text) as string[]
  return names
    .filter((name) => name !== 'default' && name !== 'module.exports' && name !== '__esModule')
    .sort()
}

describe('the packed package', () => {
  it('holds the build and the documents for users, and nothing else', () => {
    const expected =
      /^(dist\/(esm|cjs)\/.+\.(js|d\.ts)|dist\/cjs\/package\.json|[A-Z]+(\.md)?|package\.json)$/
    expect(packed.files.filter((file) => !expected.test(file))).toEqual([])
    expect(packed.files).toEqual(expect.arrayContaining(['package.json', 'LICENSE', 'dist/esm/index.js']))
  })

  it('brings no other package along', () => {
    expect(packed.installed).toEqual(['holdfast'])
  })

  it('has every file that its exports name', () => {
    const manifest = readFileSync(join(root, 'package.json'), 'utf8')
    const named = [...manifest.matchAll(/"\.\/(dist\/[^"*]+)"/g)].map(([, file]) => String(file))
    expect(named.length).toBeGreaterThan(4)
    expect(named.filter((file) => !packed.files.includes(file))).toEqual([])
  })

  it('can be imported and required, with the same names', () => {
    const imported = exportsOf('a.mjs', `import * as all from 'holdfast'; ${print('Object.keys(all)')}`)
    const required = exportsOf('a.cjs', print("Object.keys(require('holdfast'))"))
    expect(imported).toContain('Holdfast')
    expect(required).toEqual(imported)
  })

  it('is loaded once by a program that imports and requires it', () => {
    const text = `import { createRequire } from 'node:module'
      import { Holdfast } from 'holdfast'
      const required = createRequire(import.meta.url)('holdfast')
      ${print('required.Holdfast === Holdfast')}`
    expect(evaluate('b.mjs', text)).toBe(true)
  })

  it('has a CommonJS build with the same names, for tools that know only that', () => {
    const file = './node_modules/holdfast/dist/cjs/index.js'
    const built = exportsOf('c.cjs', print(`Object.keys(require('${file}'))`))
    expect(built).toEqual(exportsOf('d.mjs', `import * as all from 'holdfast'; ${print('Object.keys(all)')}`))
  })

  it.each(['./node_modules/holdfast/dist/cjs/index.js', 'holdfast'])('locks when required as %s', (file) => {
    const text = `const { Holdfast } = require('${file}')
      Holdfast.connect('memory:').then(async (holdfast) => {
        const held = await holdfast.lock('job').using((lease) => lease.held)
        await holdfast.close()
        ${print('held')}
      })`
    expect(evaluate('e.cjs', text)).toBe(true)
  })

  it('names the missing package when there is no client library', () => {
    const text = `import { Holdfast } from 'holdfast'
      const error = await Holdfast.connect('redis://127.0.0.1:1').catch((error) => error)
      ${print('String(error)')}`
    expect(evaluate('f.mjs', text)).toMatch(/ioredis|redis/)
  })

  it('shows its package.json', () => {
    expect(evaluate('g.cjs', print("require('holdfast/package.json').name"))).toBe('holdfast')
    expect(existsSync(join(bare.folder, 'node_modules/holdfast/LICENSE'))).toBe(true)
  })
})
