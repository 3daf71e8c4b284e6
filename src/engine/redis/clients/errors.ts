import { PortError, type PortErrorKind } from './port.js'

/** What is known about the way of a failed call. */
export interface FailedCall {
  /** The client's or server's error. */
  readonly error: unknown
  /** The server got the call at most once, over a link that did not break before the answer. */
  readonly unbroken: boolean
  /** The client knows the slots of a cluster. */
  readonly cluster: boolean
}

const SUBSCRIBER_HINT = 'the connection is in subscriber mode; give Holdfast a client of its own'
const CLUSTER_HINT = 'the server is part of a cluster; give Holdfast a cluster client'
const QUEUED_HINT =
  'The command was put into an open MULTI of this connection; give Holdfast a client that nobody runs transactions on'

/** The code at the head of an error reply; clients' own messages begin differently. */
const CODE = /^-?([A-Z]+) /
/** Servers before 7 wrap the error of a command in a script. */
const WRAPPED_CODE = /@user_script: ?\d+: -?([A-Z]+) /
const IN_SCRIPT = /user_script|Error running script|failure in script| script: [0-9a-f]{40}/
/** Where in which script it was, by a number that nobody else knows; before 7 in front, then behind. */
const PLACE =
  /^ERR Error running script \(.*?\): @user_script: ?\d+: -?(?=[A-Z]+ )| script: [0-9a-f]{40}, on @user_script:\d+\.?$/
const TOO_MANY_CLIENTS = /^ERR max number of clients/
const SUBSCRIBER_ONLY = /only \(P\|S\)SUBSCRIBE|only \(P\)SUBSCRIBE/

const WORTH_ANOTHER_TRY: ReadonlySet<string> = new Set([
  ...['LOADING', 'BUSY', 'READONLY', 'MASTERDOWN', 'OOM', 'MISCONF', 'NOREPLICAS'],
  ...['CLUSTERDOWN', 'TRYAGAIN', 'NOAUTH', 'WRONGPASS'],
])

/** They hold for every write of a script alike, the first one included: when they come, nothing was written. */
const BEFORE_ANY_WRITE: ReadonlySet<string> = new Set(['READONLY', 'OOM', 'MISCONF', 'NOREPLICAS'])

/** What clients say, in these words, when they refuse a command without having written it. */
const NEVER_SENT: ReadonlyMap<string, PortErrorKind> = new Map([
  // ioredis
  ["Stream isn't writeable and enableOfflineQueue options is false", 'connection'],
  ["Cluster isn't ready and enableOfflineQueue options is false", 'connection'],
  ['Connection in subscriber mode, only subscriber commands may be used', 'refused'],
  ["Connection is in monitoring mode, can't process commands.", 'refused'],
  // node-redis
  ['The client is closed', 'closed'],
  ['The client is offline', 'connection'],
  ['The command was aborted', 'connection'],
  ['The queue is full', 'connection'],
])

/** The code of an error reply of the server (`NOSCRIPT`, `ERR` …); undefined for a client's own error. */
export function replyCode(error: unknown): string | undefined {
  const message = messageOf(error)
  const code = CODE.exec(message)?.[1]
  return code === 'ERR' ? (WRAPPED_CODE.exec(message)?.[1] ?? code) : code
}

/** Sorts the failure of a call. */
export function toPortError(call: FailedCall): PortError {
  if (call.error instanceof PortError) return call.error
  const code = replyCode(call.error)
  return code === undefined ? clientFailure(call.error) : serverFailure(code, call)
}

/** The error for a reply of `QUEUED`. */
export function queuedInTransaction(): PortError {
  return new PortError(QUEUED_HINT, { kind: 'refused', outcome: 'unknown' })
}

/** The error for a call that was given up before it was sent. */
export function abandonedCall(unbroken: boolean, cause?: unknown): PortError {
  const outcome = unbroken ? 'not-applied' : 'unknown'
  return new PortError('The call was given up before it was sent', { kind: 'abandoned', outcome, cause })
}

/** The error for a subscriber that is closed. */
export function subscriberClosed(): PortError {
  return new PortError('The subscriber is closed', { kind: 'closed', outcome: 'not-applied' })
}

function clientFailure(error: unknown): PortError {
  const message = messageOf(error)
  const kind = NEVER_SENT.get(message)
  if (kind !== undefined) return new PortError(message, { kind, outcome: 'not-applied', cause: error })
  return new PortError(message === '' ? 'The client gave the command up' : message, {
    kind: 'connection',
    outcome: 'unknown',
    cause: error,
  })
}

function serverFailure(code: string, { error, unbroken, cluster }: FailedCall): PortError {
  const message = messageOf(error)
  const applied = IN_SCRIPT.test(message) && !BEFORE_ANY_WRITE.has(code)
  const outcome = unbroken && !applied ? 'not-applied' : 'unknown'
  return new PortError(withHint(code, message.replace(PLACE, ''), cluster), {
    kind: kindOf(code, message, cluster),
    outcome,
    cause: error,
  })
}

function kindOf(code: string, message: string, cluster: boolean): PortErrorKind {
  if (code === 'WRONGTYPE') return 'wrong-type'
  if (WORTH_ANOTHER_TRY.has(code) || TOO_MANY_CLIENTS.test(message)) return 'unavailable'
  return cluster && isRedirection(code) ? 'unavailable' : 'refused'
}

function withHint(code: string, message: string, cluster: boolean): string {
  if (SUBSCRIBER_ONLY.test(message)) return `${message} (${SUBSCRIBER_HINT})`
  return !cluster && isRedirection(code) ? `${message} (${CLUSTER_HINT})` : message
}

function isRedirection(code: string): boolean {
  return code === 'MOVED' || code === 'ASK'
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
