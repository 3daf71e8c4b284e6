/**
 * Every operation that the runtime may ask of an engine, and every reply.
 *
 * An operation is one atomic step on one object (renewal: on many). Counts are absolute, so that a repeated
 * or late copy changes nothing. A new engine is a table over {@link Operation} that the compiler completes.
 */
import type { LockOperation, LockReplies } from './operations/lock.js'
import type { MutexOperation, MutexReplies } from './operations/mutex.js'

export type * from './operations/common.js'
export type * from './operations/lock.js'
export type * from './operations/mutex.js'

/** All operations. */
export type Operation = LockOperation | MutexOperation

/** The reply of each operation. */
export interface Replies extends LockReplies, MutexReplies {}

/** The reply that belongs to an operation. */
export type ReplyOf<O extends Operation> = Replies[O['op']]

/** A function for each operation `O` of a family, as an engine has it; `A`: what else it gets. */
export type Handlers<O extends Operation, A extends readonly unknown[], Async extends boolean> = {
  readonly [Op in O['op']]: (
    operation: Extract<O, { readonly op: Op }>,
    ...rest: A
  ) => Async extends true ? Promise<Replies[Op]> : Replies[Op]
}
