import { describe } from 'vitest'
import { aborting } from './aborting.suite.js'
import { acquiring } from './acquiring.suite.js'
import { badOptions } from './bad-options.suite.js'
import { closing, closingNested } from './closing.suite.js'
import { leases } from './leases.suite.js'
import { names } from './names.suite.js'
import { observing } from './observing.suite.js'
import { sides } from './read-write-sides.suite.js'
import { readersTogether } from './read-write-readers.suite.js'
import { trouble } from './trouble.suite.js'
import { using } from './using.suite.js'
import { reentry } from './reentry.suite.js'
import { subscribing, waiting } from './waiting.suite.js'
import { wrongType } from './wrong-type.suite.js'
import { forKind, type Stage } from './world.js'

/** All that the read/write lock promises. */
export function readWriteSuite(stage: Stage): void {
  describe('ReadWriteLock.write', () => {
    const writes = forKind(stage, 'write')
    acquiring(writes)
    using(writes)
    aborting(writes)
    leases(writes)
    waiting(writes)
    subscribing(writes)
    closing(writes)
    names(writes)
    wrongType(writes)
    badOptions(writes)
    observing(writes)
    trouble(writes)
    closingNested(writes)
    reentry(stage, 'write')
    stage.slowTests()
  })

  // The other suites are about one holder at a time.
  describe('ReadWriteLock.read', () => {
    const reads = forKind(stage, 'read')
    badOptions(reads)
    trouble(reads)
    closingNested(reads)
    stage.slowTests()
  })

  describe('ReadWriteLock', () => {
    readersTogether(stage)
    sides(stage)
    stage.slowTests()
  })
}
