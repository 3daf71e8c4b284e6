import { describe } from 'vitest'
import { NODE_REDIS_5 } from '../clients/variants.js'
import { fairSuite } from './fair.suite.js'
import { fencedSuite } from './fenced.suite.js'
import { groupSuite } from './group.suite.js'
import { multiLockSuite } from './multi-lock.suite.js'
import { redLockSuite } from './red-lock.suite.js'
import { redServers } from './red-world.js'
import { latchSuite } from './latch.suite.js'
import { lockSuite } from './lock.suite.js'
import { mutexSuite } from './mutex.suite.js'
import { semaphoreSuite } from './semaphore.suite.js'
import { permitsSuite } from './permits.suite.js'
import { readWriteSuite } from './read-write.suite.js'
import { redisWorld } from './redis-world.js'
import { spinSuite } from './spin.suite.js'
import { watchSuite } from './watch.suite.js'
import { Stage } from './world.js'

describe(`on a real server, over ${NODE_REDIS_5.name}`, () => {
  const stage = new Stage(() => redisWorld(NODE_REDIS_5), { realTime: true })
  lockSuite(stage)
  mutexSuite(stage)
  readWriteSuite(stage)
  fairSuite(stage)
  fencedSuite(stage)
  spinSuite(stage)
  permitsSuite(stage)
  groupSuite(stage)
  multiLockSuite(stage)
  redLockSuite(() => redServers(NODE_REDIS_5, 3))
  watchSuite(stage)
  semaphoreSuite(stage)
  latchSuite(stage)
})
