/** Locks that are broken on purpose: a safety run that does not find them is worth nothing. */
import { spawnSync } from 'node:child_process'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { FAULTS, type Fault } from './faults.js'
import type { Check } from './findings.js'
import { Folder } from './folder.js'
import type { Manners } from './messages.js'
import type { Kind } from './things.js'

export interface Mutant {
  readonly name: string
  readonly what: string
  readonly kind: Kind
  readonly edits: readonly Edit[]
  /** Those that bring it out. */
  readonly faults: readonly Fault[]
  readonly manners: Manners
  /** The checks of which one must find it. */
  readonly caughtBy: readonly Check[]
}

/** A change of one file of `src`; the words must be there exactly once. */
interface Edit {
  readonly file: string
  readonly from: string
  readonly to: string
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const LUA = 'engine/redis/lua'
const USUAL: Manners = { greed: 0.15, haste: 0.2, leased: 0.4, restMs: 60 }
const GREEDY: Manners = { greed: 0.5, haste: 0, leased: 0.4, restMs: 60 }
const HASTY: Manners = { greed: 0, haste: 0.8, leased: 0, restMs: 250 }

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'release-blind',
    what: 'the release does not look whose lock it is',
    kind: 'lock',
    edits: [
      {
        file: `${LUA}/lock/release.lua`,
        from: `found = redis.call('hdel', lock, owner)`,
        to: `found = redis.call('del', lock)`,
      },
    ],
    faults: [FAULTS.lostAcquireReplies, FAULTS.stopWorker],
    manners: USUAL,
    caughtBy: ['overlap', 'server', 'theft'],
  },
  {
    name: 'mutex-release-blind',
    what: 'the release of a mutex does not look whose it is',
    kind: 'mutex',
    edits: [
      {
        file: `${LUA}/mutex/release.lua`,
        from: `local ours = holder == ARGV[1]`,
        to: `local ours = holder and ARGV[1]`,
      },
    ],
    faults: [FAULTS.lostAcquireReplies, FAULTS.stopWorker],
    manners: USUAL,
    caughtBy: ['overlap', 'server', 'theft'],
  },
  {
    name: 'renew-blind',
    what: 'the renewal does not look whose lock it is',
    kind: 'lock',
    edits: [{ file: `${LUA}/lock/renew.lua`, from: `if held == 1 then`, to: `if held then` }],
    faults: [FAULTS.force],
    manners: GREEDY,
    caughtBy: ['overlap', 'server'],
  },
  {
    name: 'acquire-blind',
    what: 'the acquire of a busy lock does not look whose it is',
    kind: 'lock',
    edits: [
      {
        file: `${LUA}/lock/acquire.lua`,
        from: `local held = redis.call('hget', lock, owner)`,
        to: `local held = redis.call('hlen', lock) > 0 and '1'`,
      },
    ],
    faults: [FAULTS.cutLinks],
    manners: USUAL,
    caughtBy: ['overlap', 'server'],
  },
  {
    name: 'reply-deadline',
    what: 'the local deadline counts from the reply, without an allowance for drift',
    kind: 'lock',
    edits: [
      {
        file: 'lease/tenure.ts',
        from: `const endMs = sentAtMs + ttlMs - this.allowance(ttlMs)`,
        to: `const endMs = this.#clock.now() + ttlMs + 0 * sentAtMs`,
      },
    ],
    faults: [FAULTS.slowReplies],
    manners: { greed: 0.8, haste: 0, leased: 1, restMs: 60 },
    caughtBy: ['overlap', 'server'],
  },
  {
    name: 'no-compensation',
    what: 'a call that gives up without an answer undoes nothing',
    kind: 'lock',
    edits: [
      {
        file: 'lease/compensation.ts',
        from: `const run = this.#run(operation, this.#clock.now() + forMs)`,
        to: `const run = this.#run(operation, forMs - forMs)`,
      },
    ],
    faults: [FAULTS.heldRepliesToAll],
    manners: HASTY,
    caughtBy: ['ghost'],
  },
  {
    name: 'tombstone-blind',
    what: 'an acquire that comes after the end of its owner takes the lock',
    kind: 'lock',
    edits: [
      {
        file: `${LUA}/lock/acquire.lua`,
        from: `redis.call('exists', lock, KEYS[2]) == 0`,
        to: `redis.call('exists', lock) == 0`,
      },
    ],
    faults: [FAULTS.lateBytes],
    manners: HASTY,
    caughtBy: ['ghost'],
  },
  {
    name: 'deadline-unseen',
    what: 'the holder does not give up at its deadline',
    kind: 'lock',
    edits: [
      {
        file: 'lease/tenure.ts',
        from: `if (this.state === 'held' && this.#clock.now() >= this.deadlineMs) this.lose('expired')`,
        to: ``,
      },
      {
        file: 'lease/tenure.ts',
        from: `return this.held ? this.deadlineMs - this.#clock.now() : 0`,
        to: `return this.held ? 1_000 : 0`,
      },
      {
        file: 'lease/watchdog.ts',
        from: `if (tenure.deadlineMs <= nowMs) tenure.lose('expired')`,
        to: `if (tenure.deadlineMs <= nowMs) tenure.deadlineMs += 1_000`,
      },
    ],
    faults: [FAULTS.blackHole, FAULTS.stopWorker],
    manners: GREEDY,
    caughtBy: ['overlap', 'server'],
  },
  {
    name: 'spin-release-blind',
    what: 'the release of a spin lock does not look whose lock it is',
    kind: 'spin',
    edits: [
      {
        file: `${LUA}/spin/release.lua`,
        from: `local found = redis.call('hdel', lock, owner)`,
        to: `local found = redis.call('del', lock)`,
      },
    ],
    faults: [FAULTS.lostAcquireReplies, FAULTS.stopWorker],
    manners: USUAL,
    caughtBy: ['overlap', 'server', 'theft'],
  },
  {
    name: 'queue-turned',
    what: 'who comes to a fair lock stands in front of the others',
    kind: 'fair',
    edits: [
      {
        file: `${LUA}/include/enqueue.lua`,
        from: `redis.call('rpush', queue, owner)`,
        to: `redis.call('lpush', queue, owner)`,
      },
    ],
    faults: [FAULTS.cutLinks],
    manners: USUAL,
    caughtBy: ['order'],
  },
  {
    name: 'token-still',
    what: 'the token of a fenced lock does not grow',
    kind: 'fenced',
    edits: [
      {
        file: `${LUA}/fenced/acquire.lua`,
        from: `local token = redis.call('incr', KEYS[3])`,
        to: `local token = redis.call('exists', KEYS[3]) == 0 and redis.call('incr', KEYS[3]) or 1`,
      },
    ],
    faults: [FAULTS.cutLinks],
    manners: USUAL,
    caughtBy: ['token'],
  },
  {
    name: 'fence-down',
    what: 'the fence lets everybody pass',
    kind: 'fenced',
    edits: [
      { file: `${LUA}/guard/pass.lua`, from: `if tonumber(ARGV[1]) < floor then`, to: `if false then` },
    ],
    faults: [FAULTS.stopWorker, FAULTS.blockWorker],
    manners: GREEDY,
    caughtBy: ['fence'],
  },
  {
    name: 'reader-unasked',
    what: 'a reader is let in beside a writer',
    kind: 'read-write',
    edits: [
      {
        file: `${LUA}/read/acquire.lua`,
        from: `local busy = mode ~= 'read' and`,
        to: `local busy = mode == 'none' and`,
      },
    ],
    faults: [FAULTS.cutLinks],
    manners: USUAL,
    caughtBy: ['overlap'],
  },
  {
    name: 'writer-unasked',
    what: 'a writer is let in beside readers',
    kind: 'read-write',
    edits: [
      {
        file: `${LUA}/write/acquire.lua`,
        from: `if count == 1 and redis.call('exists', lock, KEYS[2]) == 0 then`,
        to: `if count == 1 and redis.call('hget', lock, 'mode') ~= 'write' then`,
      },
    ],
    faults: [FAULTS.cutLinks],
    manners: USUAL,
    caughtBy: ['overlap'],
  },
  {
    name: 'reader-unrenewed',
    what: 'the renewal of a reader leaves its hold to expire',
    kind: 'read-write',
    edits: [
      {
        file: `${LUA}/read/renew.lua`,
        from: `and raise(holdKey(lock, owner, 1)) then`,
        to: `and redis.call('exists', holdKey(lock, owner, 1)) == 1 then`,
      },
    ],
    faults: [FAULTS.cutLinks],
    manners: { greed: 0.5, haste: 0, leased: 0, restMs: 60 },
    caughtBy: ['server', 'overlap'],
  },
  {
    name: 'permit-short',
    what: 'who wants two permits is content if there is one',
    kind: 'permits',
    edits: [
      {
        file: `${LUA}/permits/acquire.lua`,
        from: `local reply = available < wanted and`,
        to: `local reply = available < 1 and`,
      },
    ],
    faults: [FAULTS.cutLinks],
    manners: USUAL,
    caughtBy: ['overlap'],
  },
  {
    name: 'multi-part',
    what: 'of several locks only the first must be free',
    kind: 'multi',
    edits: [
      {
        file: `${LUA}/multi/acquire.lua`,
        from: `if not held[i] and redis.call('exists', lock) == 1 then`,
        to: `if i == 1 and not held[i] and redis.call('exists', lock) == 1 then`,
      },
    ],
    faults: [FAULTS.cutLinks],
    manners: USUAL,
    caughtBy: ['overlap', 'server'],
  },
]

/** A copy of `src` with the mutant's changes. */
export class BrokenCopy implements Disposable {
  /** The file to load Holdfast from. */
  readonly source: string
  readonly #folder = new Folder('holdfast-mutant-')

  constructor({ edits }: Mutant) {
    cpSync(join(ROOT, 'src'), join(this.#folder.path, 'src'), { recursive: true })
    writeFileSync(join(this.#folder.path, 'package.json'), '{ "type": "module" }')
    for (const edit of edits) this.#apply(edit)
    if (edits.some(({ file }) => file.endsWith('.lua'))) this.#generate()
    this.source = pathToFileURL(join(this.#folder.path, 'src/index.ts')).href
  }

  [Symbol.dispose](): void {
    this.#folder[Symbol.dispose]()
  }

  #apply({ file, from, to }: Edit): void {
    const path = join(this.#folder.path, 'src', file)
    const text = readFileSync(path, 'utf8')
    if (text.split(from).length !== 2) throw new Error(`src/${file} has not once: ${from}`)
    writeFileSync(
      path,
      text.replace(from, () => to),
    )
  }

  #generate(): void {
    const tool = join(ROOT, 'tools/build-lua.mjs')
    const { status, stderr } = spawnSync(process.execPath, [tool, '--root', this.#folder.path], {
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(`the scripts of a mutant cannot be generated:\n${stderr}`)
  }
}
