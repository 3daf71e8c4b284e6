// The floor: the bare client doing SET NX PX and a compare-and-delete script, the least that a lock can send.
import { createHash, randomUUID } from 'node:crypto'

const RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
const SHA = createHash('sha1').update(RELEASE).digest('hex')

export function floorIoredis(redis) {
  return {
    async prepare() {
      await redis.script('LOAD', RELEASE)
    },
    async pair(name) {
      const token = randomUUID()
      if ((await redis.set(name, token, 'PX', 30_000, 'NX')) !== 'OK') throw new Error(`${name} is not free`)
      if ((await redis.evalsha(SHA, 1, name, token)) !== 1) throw new Error(`${name} was lost`)
    },
  }
}

export function floorNodeRedis(redis) {
  return {
    async prepare() {
      await redis.scriptLoad(RELEASE)
    },
    async pair(name) {
      const token = randomUUID()
      const reply = await redis.set(name, token, {
        condition: 'NX',
        expiration: { type: 'PX', value: 30_000 },
      })
      if (reply !== 'OK') throw new Error(`${name} is not free`)
      if ((await redis.evalSha(SHA, { keys: [name], arguments: [token] })) !== 1)
        throw new Error(`${name} was lost`)
    },
  }
}
