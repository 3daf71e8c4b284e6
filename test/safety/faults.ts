/** What is done to the workers, their links and the server. Each fault is healed when its promise resolves. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Request } from '../support/proxy.js'
import type { RedisServer } from '../support/server.js'
import type { Control } from './control.js'
import type { Random } from './random.js'
import type { Seat } from './seat.js'

/** What faults are made on. */
export interface Scene {
  readonly server: RedisServer
  readonly control: Control
  readonly seats: readonly Seat[]
  readonly random: Random
  readonly watchdogMs: number
  /** Removes the key of a lock, and notes whose it was. */
  rob(): Promise<void>
}

export interface Fault {
  readonly name: string
  /** Whom it touches: one worker (the holder, mostly), or everybody. */
  readonly on: 'worker' | 'all'
  make(scene: Scene, victim: Seat): Promise<void>
}

/** Anything from a blink to more than two leases. */
function span({ random, watchdogMs }: Scene): number {
  return watchdogMs * random.pick([0.2, 0.8, 1.3, 1.8, 2.3])
}

/** Long enough for a lease to end. */
function longSpan({ random, watchdogMs }: Scene): number {
  return watchdogMs * random.pick([1.2, 1.5, 2])
}

const stopWorker: Fault = {
  name: 'worker stopped (STOP, CONT)',
  on: 'worker',
  make: async (scene, victim) => {
    victim.stop()
    await sleep(longSpan(scene))
    victim.resume()
  },
}

const killWorker: Fault = {
  name: 'worker killed (kill -9)',
  on: 'worker',
  make: async ({ random }, victim) => {
    await victim.kill()
    await sleep(random.between(0, 300))
    await victim.fill()
  },
}

const blockWorker: Fault = {
  name: 'event loop of a worker blocked',
  on: 'worker',
  make: async (scene, victim) => {
    const ms = longSpan(scene)
    victim.order({ do: 'block', ms })
    await sleep(ms)
  },
}

const stopServer: Fault = {
  name: 'server stopped (STOP, CONT)',
  on: 'all',
  make: async (scene) => {
    scene.server.pause()
    await sleep(span(scene))
    scene.server.resume()
  },
}

const restartServer: Fault = {
  name: 'server killed, restarted with its data',
  on: 'all',
  make: async ({ server, random }) => {
    await server.kill()
    await sleep(random.between(0, 800))
    await server.start()
  },
}

const cutLinks: Fault = {
  name: 'links cut',
  on: 'all',
  make: async ({ seats }) => {
    for (const { proxy } of seats) proxy.cutAll()
  },
}

const refuseLinks: Fault = {
  name: 'links of a worker cut and refused',
  on: 'worker',
  make: async (scene, { proxy }) => {
    proxy.refuse()
    proxy.cutAll()
    await sleep(span(scene))
    await proxy.accept()
  },
}

const blackHole: Fault = {
  name: 'links of a worker go nowhere, bytes lost',
  on: 'worker',
  make: async (scene, { proxy }) => {
    proxy.blackHole()
    await sleep(longSpan(scene))
    proxy.cutAll()
    await proxy.pass()
  },
}

const partition: Fault = {
  name: 'links of a worker go nowhere, bytes late',
  on: 'worker',
  make: async (scene, { proxy }) => {
    proxy.holdRequests()
    proxy.holdReplies()
    await sleep(longSpan(scene))
    await proxy.pass()
  },
}

/** What was sent over links that are dead since arrives after what was sent over their successors. */
const lateBytes: Fault = {
  name: 'links cut, their last bytes late',
  on: 'all',
  make: async (scene) => {
    const proxies = scene.seats.map(({ proxy }) => proxy)
    for (const proxy of proxies) {
      const newest = proxy.accepted
      proxy.holdRequests(({ connection }) => connection <= newest)
    }
    await sleep(scene.random.between(30, 200))
    for (const proxy of proxies) proxy.cutClients()
    await sleep(longSpan(scene))
    await Promise.all(proxies.map((proxy) => proxy.pass()))
  },
}

const heldReplies: Fault = {
  name: 'requests of a worker arrive, replies late',
  on: 'worker',
  make: async (scene, { proxy }) => {
    proxy.holdReplies()
    await sleep(span(scene))
    await proxy.pass()
  },
}

const heldRepliesToAll: Fault = {
  name: 'requests of all workers arrive, replies late',
  on: 'all',
  make: async (scene) => {
    for (const { proxy } of scene.seats) proxy.holdReplies()
    await sleep(longSpan(scene))
    await Promise.all(scene.seats.map(({ proxy }) => proxy.pass()))
  },
}

const slowReplies: Fault = {
  name: 'slow replies to a worker',
  on: 'worker',
  make: async (scene, { proxy }) => {
    proxy.delayReplies(scene.random.between(100, 700))
    await sleep(longSpan(scene))
    await proxy.pass()
  },
}

const slowRequests: Fault = {
  name: 'slow requests of a worker',
  on: 'worker',
  make: async (scene, { proxy }) => {
    proxy.delayRequests(scene.random.between(100, 700))
    await sleep(longSpan(scene))
    await proxy.pass()
  },
}

const lostReplies: Fault = {
  name: 'applied, but the link cut before the reply',
  on: 'all',
  make: async (scene) => {
    for (const { proxy } of scene.seats) proxy.dropReply(/^EVAL/, scene.random.between(1, 3))
    await sleep(scene.watchdogMs / 2)
    await Promise.all(scene.seats.map(({ proxy }) => proxy.pass()))
  },
}

const lostAcquireReplies: Fault = {
  name: 'acquire applied, but the link cut before the reply',
  on: 'all',
  make: async (scene) => {
    for (const { proxy } of scene.seats)
      proxy.dropReply(({ request }) => request !== undefined && isAcquire(request), 2)
    await sleep(scene.watchdogMs / 2)
    await Promise.all(scene.seats.map(({ proxy }) => proxy.pass()))
  },
}

/** By its shape: script, text, two keys, and no more than owner, count and lease time. */
function isAcquire({ words }: Request): boolean {
  return /^EVAL/i.test(words[0] ?? '') && words[2] === '2' && words.length <= 8
}

const killCommandLinks: Fault = {
  name: 'CLIENT KILL normal',
  on: 'all',
  make: ({ control }) => control.killLinks('normal'),
}

const killSubscriberLinks: Fault = {
  name: 'CLIENT KILL pubsub',
  on: 'all',
  make: ({ control }) => control.killLinks('pubsub'),
}

const flushScripts: Fault = {
  name: 'SCRIPT FLUSH',
  on: 'all',
  make: async ({ control }) => {
    await control.send('SCRIPT', 'FLUSH')
  },
}

const force: Fault = {
  name: 'locks taken away by force',
  on: 'all',
  make: async (scene) => {
    for (let times = 0; times < 3; times++) {
      await scene.rob()
      await sleep(scene.random.between(50, 400))
    }
  },
}

/** All faults. */
export const FAULTS = {
  stopWorker,
  killWorker,
  blockWorker,
  stopServer,
  restartServer,
  cutLinks,
  refuseLinks,
  blackHole,
  partition,
  lateBytes,
  heldReplies,
  heldRepliesToAll,
  slowReplies,
  slowRequests,
  lostReplies,
  lostAcquireReplies,
  killCommandLinks,
  killSubscriberLinks,
  flushScripts,
  force,
} as const satisfies Readonly<Record<string, Fault>>
