/** Temporary folders that do not outlive the run, however it ends. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export class Folder implements Disposable {
  readonly path: string
  readonly #remove = (): void => {
    rmSync(this.path, { recursive: true, force: true })
  }

  constructor(prefix: string) {
    this.path = mkdtempSync(join(tmpdir(), prefix))
    process.on('exit', this.#remove)
  }

  /** It stays, to be looked at. */
  keep(): void {
    process.off('exit', this.#remove)
  }

  [Symbol.dispose](): void {
    this.keep()
    this.#remove()
  }
}
