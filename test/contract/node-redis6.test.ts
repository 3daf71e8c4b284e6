import { describe } from 'vitest'
import { NODE_REDIS_6 } from '../clients/variants.js'
import { lockSuite } from './lock.suite.js'
import { mutexSuite } from './mutex.suite.js'
import { redisWorld } from './redis-world.js'
import { Stage } from './world.js'

describe(`on a real server, over ${NODE_REDIS_6.name}`, () => {
  const stage = new Stage(() => redisWorld(NODE_REDIS_6), { realTime: true })
  lockSuite(stage)
  mutexSuite(stage)
})
