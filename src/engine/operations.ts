/**
 * Every operation that the runtime may ask of an engine, and every reply.
 *
 * An operation is one atomic step on one object (renewal: on many). Counts are absolute, so that a repeated
 * or late copy changes nothing. A new engine is a table over {@link Operation} that the compiler completes.
 */
import type { FairOperation, FairReplies } from './operations/fair.js'
import type { FencedOperation, FencedReplies } from './operations/fenced.js'
import type { LatchOperation, LatchReplies } from './operations/latch.js'
import type { LockOperation, LockReplies } from './operations/lock.js'
import type { MultiOperation, MultiReplies } from './operations/multi.js'
import type { MutexOperation, MutexReplies } from './operations/mutex.js'
import type { PermitsOperation, PermitsReplies } from './operations/permits.js'
import type { ReadWriteOperation, ReadWriteReplies } from './operations/read-write.js'
import type { SemaphoreOperation, SemaphoreReplies } from './operations/semaphore.js'
import type { ServerOperation, ServerReplies } from './operations/server.js'
import type { SpinOperation, SpinReplies } from './operations/spin.js'
import type { WatchOperation, WatchReplies } from './operations/watch.js'

export type * from './operations/common.js'
export type * from './operations/fair.js'
export type * from './operations/fenced.js'
export type * from './operations/latch.js'
export type * from './operations/lock.js'
export type * from './operations/multi.js'
export type * from './operations/mutex.js'
export type * from './operations/permits.js'
export type * from './operations/read-write.js'
export type * from './operations/semaphore.js'
export type * from './operations/server.js'
export type * from './operations/spin.js'
export type * from './operations/watch.js'

/** All operations. */
export type Operation =
  | SemaphoreOperation
  | PermitsOperation
  | LatchOperation
  | MultiOperation
  | ServerOperation
  | LockOperation
  | ReadWriteOperation
  | MutexOperation
  | FairOperation
  | FencedOperation
  | SpinOperation
  | WatchOperation

/** The reply of each operation. */
export interface Replies
  extends
    SemaphoreReplies,
    PermitsReplies,
    LatchReplies,
    MultiReplies,
    ServerReplies,
    LockReplies,
    ReadWriteReplies,
    MutexReplies,
    FairReplies,
    FencedReplies,
    SpinReplies,
    WatchReplies {}

/** The reply that belongs to an operation. */
export type ReplyOf<O extends Operation> = O extends { readonly op: infer Op extends keyof Replies }
  ? Replies[Op]
  : never

/** A function for each operation `O` of a family, as an engine has it; `A`: what else it gets. */
export type Handlers<O extends Operation, A extends readonly unknown[], Async extends boolean> = {
  readonly [Op in O['op']]: (
    operation: Extract<O, { readonly op: Op }>,
    ...rest: A
  ) => Async extends true ? Promise<Replies[Op]> : Replies[Op]
}
