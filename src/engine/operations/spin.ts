/** The spin lock: the re-entrant lock, whose end nobody is told of. All other operations are the lock's. */
import type { Force, ForceReply, Release, ReleaseReply } from './common.js'

/** The operations of the spin lock that are not the lock's. */
export type SpinOperation = Release<'spin.release'> | Force<'spin.force'>

/** Their replies. */
export interface SpinReplies {
  'spin.release': ReleaseReply
  'spin.force': ForceReply
}
