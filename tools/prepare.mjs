// npm runs this after `npm ci` in a checkout, and before packing when the package is installed by git address.
import { createRequire } from 'node:module'

function hasCompiler() {
  try {
    createRequire(import.meta.url).resolve('typescript/bin/tsc')
    return true
  } catch {
    return false
  }
}

// Without development tools (`npm ci --omit=dev`) there is nothing to build with, and nothing to complain about.
if (hasCompiler()) {
  process.argv.push('--if-stale')
  await import('./build.mjs')
}
