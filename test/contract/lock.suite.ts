import { describe } from 'vitest'
import { aborting } from './aborting.suite.js'
import { acquiring } from './acquiring.suite.js'
import { badOptions } from './bad-options.suite.js'
import { closing, closingNested } from './closing.suite.js'
import { leases } from './leases.suite.js'
import { reentry } from './reentry.suite.js'
import { names } from './names.suite.js'
import { observing } from './observing.suite.js'
import { trouble } from './trouble.suite.js'
import { using } from './using.suite.js'
import { subscribing, waiting } from './waiting.suite.js'
import { wrongType } from './wrong-type.suite.js'
import { forKind, type Stage } from './world.js'

/** All that the re-entrant lock promises. */
export function lockSuite(stage: Stage): void {
  describe('Lock', () => {
    const locks = forKind(stage, 'lock')
    acquiring(locks)
    using(locks)
    aborting(locks)
    leases(locks)
    waiting(locks)
    subscribing(locks)
    closing(locks)
    names(locks)
    wrongType(locks)
    badOptions(locks)
    observing(locks)
    trouble(locks)
    closingNested(locks)
    reentry(stage)
    stage.slowTests()
  })
}
