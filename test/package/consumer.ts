/** Projects that use the packed package, each with one client library or none. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { settings, type Compilation } from './compiler.js'

export const root = fileURLToPath(new URL('../..', import.meta.url))
const modules = join(root, 'node_modules')
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')

export interface Result {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

export function run(command: string, args: readonly string[], cwd: string): Result {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    env: bareEnv(),
  })
  if (error !== undefined) throw error
  return { status, stdout, stderr }
}

/** Without what npm and the test runner set for their own child processes. */
function bareEnv(): NodeJS.ProcessEnv {
  const ours = /^(npm_|NODE_|VITEST|INIT_CWD)/
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !ours.test(name) || name === 'NODE_EXTRA_CA_CERTS'),
  )
}

function must(result: Result): Result {
  if (result.status !== 0) throw new Error(`${result.stdout}\n${result.stderr}`)
  return result
}

/** The package as users get it: packed, and installed without network into an empty project. */
export class Packed implements Disposable {
  readonly files: readonly string[]
  readonly #folder = mkdtempSync(join(tmpdir(), 'holdfast-package-'))

  constructor() {
    const pack = ['pack', '--ignore-scripts', '--json', '--pack-destination', this.#folder]
    const [report] = JSON.parse(must(run('npm', pack, root)).stdout) as [{ files: { path: string }[] }]
    this.files = report.files.map(({ path }) => path)
    const tarball = readdirSync(this.#folder).find((name) => name.endsWith('.tgz'))
    const installed = this.#emptyProject('installed')
    const install = ['install', `../${String(tarball)}`, '--offline', '--no-audit', '--no-fund']
    must(run('npm', install, installed))
  }

  /** What npm brought along with the package. */
  get installed(): readonly string[] {
    return readdirSync(join(this.#folder, 'installed', 'node_modules')).filter(
      (name) => !name.startsWith('.'),
    )
  }

  /** A project with the package and some packages of our development tools under the given names. */
  project(name: string, packages: Readonly<Record<string, string>> = {}): Project {
    const folder = this.#emptyProject(name)
    const target = join(folder, 'node_modules', 'holdfast')
    // A copy, not a link: from the real place of a link other packages would be found.
    cpSync(join(this.#folder, 'installed', 'node_modules', 'holdfast'), target, { recursive: true })
    for (const [as, from] of Object.entries({ '@types/node': '@types/node', ...packages })) {
      const link = join(folder, 'node_modules', as)
      mkdirSync(dirname(link), { recursive: true })
      symlinkSync(join(modules, from), link, 'dir')
    }
    return new Project(folder)
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #emptyProject(name: string): string {
    const folder = join(this.#folder, name)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'consumer', private: true }))
    return folder
  }
}

export class Project {
  readonly folder: string

  constructor(folder: string) {
    this.folder = folder
  }

  write(file: string, text: string): void {
    writeFileSync(join(this.folder, file), text)
  }

  /** Runs a program of this project on Node. */
  node(...args: readonly string[]): Result {
    return run(process.execPath, args, this.folder)
  }

  /** What `tsc` prints for a file of this project. */
  tsc(file: string, compilation: Compilation): string {
    const compilerOptions = settings(compilation)
    const lib = ['es2022', 'esnext.disposable']
    this.write(
      'tsconfig.json',
      JSON.stringify({ compilerOptions: { ...compilerOptions, lib }, files: [file] }),
    )
    return this.node(tsc, '-p', 'tsconfig.json').stdout
  }
}
