import { UpgradeError } from '../errors.js'
import { attempt, failure } from './attempt.js'
import { Busy, type Call, type Rhythm } from './call.js'
import { nextPause, worthRetrying } from './commands.js'
import { Gate, rest } from './gate.js'
import type { HeldLease } from './lease.js'
import type { Runtime } from './runtime.js'
import type { Family, Target } from './target.js'
import { EXCLUSIVE, waitInLine, waitTogether, type Attempting } from './wait.js'

const RETRY_MS = 50
/** The next in line is held back as well, and need not be told when to look. */
const HELD_BACK: Rhythm = { untilMs: 0, floorMs: RETRY_MS, capMs: 5_000 }

/** Attempts to read: many may hold the lock at once, so the first that gets it lets the others of this process try. */
export const READING: Attempting<HeldLease> = {
  attempt: attemptToRead,
  contest: (runtime, call) => EXCLUSIVE.contest(runtime, call),
  granted: (_runtime, _call, contest) => {
    contest.answered()
  },
}

/** Attempts to write. */
export const WRITING: Attempting<HeldLease> = { ...EXCLUSIVE, attempt: attemptToWrite }

/** How each side of a read/write lock is attempted. */
export const SIDES: Readonly<Partial<Record<Family, Attempting<HeldLease>>>> = {
  read: READING,
  write: WRITING,
}

/** Waits for a read lock: at once with all other readers, unless some of them were told that it is busy, or a writer is to go first. */
export function waitToRead(runtime: Runtime, call: Call): Promise<HeldLease | Busy> {
  const held = gateOf(runtime, call.target)?.holdsBack() === true
  return held ? waitInLine(runtime, call, READING) : waitTogether(runtime, call, READING)
}

/**
 * Which lease a call enters that is inside of `lease`, which is one of the same read/write lock but of its other
 * side: a read inside a write is let in beside it, and a write inside a read only enters a write around both.
 * @throws UpgradeError
 */
export function acrossSides(runtime: Runtime, target: Target, lease: HeldLease): HeldLease {
  const same = runtime.scope.find(target, ({ tenure }) => tenure.target.family === target.family)
  if (same !== undefined) return same
  if (target.family === 'write') throw new UpgradeError(target.title)
  return lease
}

/**
 * Takes the read lock inside a write lock that the caller holds: an owner's first such read has the name of the
 * writer, as it is with Redisson. It does not wait for anybody. `closed`: the write is over, as the server says.
 */
export async function downgrade(
  runtime: Runtime,
  call: Call,
  { tenure }: HeldLease,
): Promise<HeldLease | Busy | 'closed'> {
  const { clock, settings } = runtime
  call.writer = tenure.owner
  // An owner that was ended is dead, so its name serves one read only.
  if (!tenure.read) call.owner = tenure.owner
  tenure.read = true
  const patienceMs = Math.min(call.options.waitTimeMs, settings.unavailableAfter)
  for (let pauseMs = RETRY_MS; ; pauseMs = nextPause(pauseMs)) {
    try {
      const result = await READING.attempt(runtime, call)
      if (result !== 'void') return result instanceof Busy ? lost() : result
    } catch (error) {
      if (call.fired || !worthRetrying(error) || call.waitedMs + pauseMs >= patienceMs)
        throw failure(call, error)
    }
    await rest(call, { clock, ms: pauseMs })
    if (call.fired) throw failure(call, call.reason)
  }

  function lost(): 'closed' {
    runtime.watchdog.confirmSoon(tenure)
    call.writer = ''
    return 'closed'
  }
}

async function attemptToRead(runtime: Runtime, call: Call): Promise<HeldLease | Busy | 'void'> {
  const { target, options } = call
  const gate = gateOf(runtime, target)
  const { letIn } = call
  call.letIn = false
  if (!letIn && call.writer === '' && gate?.holdsBack() === true) {
    if (options.waitTimeMs === 0) return new Busy(undefined)
    await gate.admission(call)
    if (call.fired) throw failure(call, call.reason)
    if (call.overdue) return new Busy(call.seen, HELD_BACK)
  }
  const result = await attempt(runtime, call)
  if (result === 'void') return result
  if (result instanceof Busy) readerIsBusy(runtime, call)
  else {
    gateFor(runtime, target).entered('read', result.tenure)
    if (runtime.waited(target)) runtime.contest(target).open()
  }
  return result
}

function readerIsBusy(runtime: Runtime, call: Call): void {
  gateOf(runtime, call.target)?.readerAnswered()
  if (call.options.waitTimeMs === 0 || call.onEnd !== undefined) return
  const gate = gateFor(runtime, call.target)
  gate.readerWaits(call)
  call.onEnd = () => {
    gate.readerGone(call)
  }
}

async function attemptToWrite(runtime: Runtime, call: Call): Promise<HeldLease | Busy | 'void'> {
  const { target, options } = call
  await gateOf(runtime, target)?.yieldToReaders(call)
  if (call.fired) throw failure(call, call.reason)
  const result = await attempt(runtime, call)
  if (result === 'void') return result
  if (!(result instanceof Busy)) gateFor(runtime, target).entered('write', result.tenure)
  else if (options.waitTimeMs > 0) gateFor(runtime, target).writerWaits(call)
  return result
}

function gateOf(runtime: Runtime, { name }: Target): Gate | undefined {
  return runtime.gates.get(name)
}

function gateFor(runtime: Runtime, target: Target): Gate {
  const { name, title } = target
  const existing = runtime.gates.get(name)
  if (existing !== undefined) return existing
  const gate = new Gate({
    clock: runtime.clock,
    longestMs: runtime.settings.lockWatchdogTimeout,
    poke: (family) => {
      const side = { family, name, title }
      if (runtime.waited(side)) runtime.contest(side).poke()
    },
    onIdle: () => {
      if (runtime.gates.get(name) === gate) runtime.gates.delete(name)
    },
  })
  runtime.gates.set(name, gate)
  return gate
}
