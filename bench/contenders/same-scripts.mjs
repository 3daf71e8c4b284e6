// The bare client sending the very scripts that the re-entrant lock sends: what the library itself costs on top.
import { randomUUID } from 'node:crypto'

const CLIENT = randomUUID()

export function sameScripts(evalsha, scripts) {
  let number = 0
  return {
    async prepare() {
      await scripts.load()
    },
    async pair(name) {
      const owner = `${CLIENT}:${String(++number)}`
      const tombstone = `redisson_unlock_latch:{${name}}:${owner}`
      const acquired = await evalsha(scripts.acquire, [name, tombstone], [owner, '1', '30000'])
      if (acquired !== 1) throw new Error(`${name} is not free`)
      const channel = `redisson_lock__channel:{${name}}`
      const released = await evalsha(
        scripts.release,
        [name, tombstone],
        [owner, channel, 'PUBLISH', '0', '0'],
      )
      if (released !== 1) throw new Error(`${name} was lost`)
    },
  }
}
