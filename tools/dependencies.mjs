// Makes sure that node_modules holds what the lock file says. Built-ins only.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

// npm goes on to explain all its options.
const LINES_OF_TROUBLE = 6

/** Installs the development tools unless they are there. True when they are there at the end. */
export function ensureDependencies() {
  if (isInstalled()) return true
  console.error('holdfast: node_modules is not what the lock file says, running npm ci …')
  // The scripts of packages are not needed, and our own would only build what not every command uses.
  const args = ['ci', '--ignore-scripts', '--include=dev', '--no-audit', '--no-fund', '--no-update-notifier']
  return npm(args) && isInstalled()
}

function npm(args) {
  const cli = process.env.npm_execpath ?? ''
  const [command, ...before] = /\.c?js$/.test(cli) ? [process.execPath, cli] : ['npm']
  const { status, stderr, error } = spawnSync(command, [...before, ...args], {
    cwd: root,
    encoding: 'utf8',
    shell: process.platform === 'win32' && command === 'npm',
  })
  if (status === 0) return true
  const cause = error?.message ?? stderr.trim().split('\n').slice(0, LINES_OF_TROUBLE).join('\n')
  console.error(`holdfast: npm ${args[0]} failed: ${cause}`)
  return false
}

function isInstalled() {
  const wanted = packagesOf(join(root, 'package-lock.json'))
  // npm notes here what it has installed.
  const there = packagesOf(join(root, 'node_modules', '.package-lock.json'))
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '') return true
    const found = there[path]
    // Optional ones are for other systems, or not.
    if (found === undefined) return entry.optional === true
    return found.version === entry.version && existsSync(join(root, path, 'package.json'))
  })
}

function packagesOf(file) {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).packages : {}
}
