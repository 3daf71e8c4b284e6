import { abandonedCall, queuedInTransaction, replyCode, toPortError } from './errors.js'
import { PortError, type Passage, type RawReply, type Readiness, type ScriptCall } from './port.js'

/** A connection that scripts are sent over, as an adapter shows it. */
export interface ScriptLink {
  readonly cluster: boolean
  readonly readiness: Readiness
  /** Differs after the link was re-established. `NaN`, which differs from itself, where that cannot be told. */
  readonly epoch: number
  /** Monotonic milliseconds. */
  readonly now: () => number
  evalsha(call: ScriptCall): Promise<unknown>
  /** The same by its text, to the same node. */
  evaluate(call: ScriptCall): Promise<unknown>
  /** Brings the client's reply into the port's form. */
  decode(reply: unknown): RawReply
  /** The server said that it is a replica. */
  onReadonly(): void
}

/** Sends EVALSHA, and EVAL upon NOSCRIPT. The first command goes out in the same tick. */
export function runScript(link: ScriptLink, call: ScriptCall, passage: Passage): Promise<RawReply> {
  const unsent = passage.sends === 0
  const epoch = link.epoch
  passage.once = false
  if (passage.abandoned) return Promise.reject(abandonedCall(unsent))
  const failed = (error: unknown): Promise<RawReply> => {
    const code = replyCode(error)
    // A reply, and be it an error, over the link that the call went out on: it was sent no second time.
    const unbroken = code !== undefined && link.epoch === epoch
    passage.once = unsent && unbroken
    if (code !== 'NOSCRIPT') return Promise.reject(failure(link, error, unbroken))
    return runText({ link, call, passage, epoch, noScript: error })
  }
  try {
    markSent(link, passage)
    return link.evalsha(call).then((reply) => {
      passage.once = unsent && link.epoch === epoch
      return decoded(link, reply)
    }, failed)
  } catch (error) {
    return failed(error)
  }
}

interface FirstTry {
  readonly link: ScriptLink
  readonly call: ScriptCall
  readonly passage: Passage
  readonly epoch: number
  readonly noScript: unknown
}

/** NOSCRIPT proves that nothing was executed yet, unless the call was sent again behind our back. */
async function runText({ link, call, passage, epoch, noScript }: FirstTry): Promise<RawReply> {
  const { once } = passage
  const unbroken = link.epoch === epoch
  if (passage.abandoned) throw abandonedCall(unbroken, noScript)
  if (link.readiness !== 'ready') throw notReady(unbroken, noScript)
  passage.once = false
  try {
    markSent(link, passage)
    const reply = await link.evaluate(call)
    passage.once = once && link.epoch === epoch
    return decoded(link, reply)
  } catch (error) {
    const still = replyCode(error) !== undefined && link.epoch === epoch
    passage.once = once && still
    throw failure(link, error, still)
  }
}

function markSent(link: ScriptLink, passage: Passage): void {
  const nowMs = link.now()
  if (passage.sends === 0) passage.firstSentAtMs = nowMs
  passage.lastSentAtMs = nowMs
  passage.sends += 1
}

function decoded(link: ScriptLink, reply: unknown): RawReply {
  const raw = link.decode(reply)
  if (raw === 'QUEUED') throw queuedInTransaction()
  return raw
}

function failure(link: ScriptLink, error: unknown, unbroken: boolean): PortError {
  if (replyCode(error) === 'READONLY') link.onReadonly()
  return toPortError({ error, unbroken, cluster: link.cluster })
}

function notReady(unbroken: boolean, cause: unknown): PortError {
  const outcome = unbroken ? 'not-applied' : 'unknown'
  return new PortError('The link went down before the script could be sent in full', {
    kind: 'connection',
    outcome,
    cause,
  })
}
