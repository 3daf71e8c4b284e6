import { describe } from 'vitest'
import { lockSuite } from './lock.suite.js'
import { memoryWorld } from './memory-world.js'
import { mutexSuite } from './mutex.suite.js'
import { Stage } from './world.js'

describe('on the memory engine', () => {
  const stage = new Stage(memoryWorld, { realTime: false })
  lockSuite(stage)
  mutexSuite(stage)
})
