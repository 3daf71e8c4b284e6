/** Before the tests of the package: the build, once. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export default function build(): void {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const { status } = spawnSync(process.execPath, ['tools/build.mjs', '--if-stale'], {
    cwd: root,
    stdio: 'inherit',
  })
  if (status !== 0) throw new Error('the build failed')
}
