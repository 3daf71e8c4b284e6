import { describe } from 'vitest'
import { aborting } from './aborting.suite.js'
import { acquiring } from './acquiring.suite.js'
import { badOptions } from './bad-options.suite.js'
import { closing, closingNested } from './closing.suite.js'
import { leases } from './leases.suite.js'
import { names } from './names.suite.js'
import { observing } from './observing.suite.js'
import { trouble } from './trouble.suite.js'
import { using } from './using.suite.js'
import { subscribing, waiting } from './waiting.suite.js'
import { wrongType } from './wrong-type.suite.js'
import { forKind, type Stage } from './world.js'

/** What locks that are made of several promise like any other, tried on one of one: there all else is equal. */
export function groupSuite(stage: Stage): void {
  for (const kind of ['multi', 'red'] as const)
    describe(`${kind} lock of one`, () => {
      const locks = forKind(stage, kind)
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
      // Several servers have troubles of their own.
      if (kind === 'multi') trouble(locks)
      closingNested(locks)
      stage.slowTests()
    })
}
