import { describe } from 'vitest'
import { IOREDIS_5 } from '../clients/variants.js'
import { lockSuite } from './lock.suite.js'
import { mutexSuite } from './mutex.suite.js'
import { redisWorld } from './redis-world.js'
import { Stage } from './world.js'

describe(`on a real server, over ${IOREDIS_5.name}`, () => {
  const stage = new Stage(() => redisWorld(IOREDIS_5), { realTime: true })
  lockSuite(stage)
  mutexSuite(stage)
})
