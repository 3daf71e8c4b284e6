/** The table of objects. One more object is one more line. */
import { describe } from 'vitest'
import { latchSuite } from './count-down-latch.suite.js'
import { docsSuite } from './docs.suite.js'
import { fairSuite } from './fair.suite.js'
import { fencedSuite } from './fenced.suite.js'
import { lockSuite } from './lock.suite.js'
import { multiSuite } from './multi.suite.js'
import { permitsSuite } from './permits.suite.js'
import { redSuite } from './red.suite.js'
import { readWriteSuite } from './read-write.suite.js'
import { semaphoreSuite } from './semaphore.suite.js'
import { spinSuite } from './spin.suite.js'
import { Stage } from './support/stage.js'
import { wireSuite } from './wire.suite.js'

const SUITES: readonly ((stage: Stage) => void)[] = [
  wireSuite,
  lockSuite,
  fairSuite,
  fencedSuite,
  spinSuite,
  readWriteSuite,
  multiSuite,
  redSuite,
  semaphoreSuite,
  permitsSuite,
  latchSuite,
  docsSuite,
]

/** Declares all tests with one version of Redisson. */
export function interopWith(version: string): void {
  describe.concurrent(`Redisson ${version}`, () => {
    const stage = new Stage(version)
    for (const suite of SUITES) suite(stage)
  })
}
