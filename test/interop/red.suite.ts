/** A lock over three servers, between Java and Node: on each server it is an ordinary lock to everybody else. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import type { Holdfast, RedLock } from '../../src/index.js'
import { eventually } from '../support/eventually.js'
import { raw } from '../support/raw.js'
import { startRedis, type RedisServer } from '../support/server.js'
import { expectPeace } from './support/contest.js'
import { JavaLock, multiReference, onServer, reference } from './support/java-objects.js'
import type { JavaPeer } from './support/java-peer.js'
import { watch } from './support/pending.js'
import { AGES_MS, WATCHDOG_MS, type Scene, type Stage } from './support/stage.js'

const PLACES = [0, 1, 2]
const ALL = [true, true, true]
const NONE = [false, false, false]
/** Java gives up a member that is silent after this time, and does not ask again. */
const COMMAND_MS = 500

/** Three servers, and a Java process with a client for each. */
interface Field {
  readonly servers: readonly RedisServer[]
  readonly java: JavaPeer
}

interface Sides {
  readonly field: Field
  readonly java: JavaLock
  readonly node: RedLock
  readonly members: readonly Holdfast[]
}

/** Declares the tests of the lock over several servers. */
export function redSuite(stage: Stage): void {
  describe('RedLock and getRedLock', () => {
    let open: Field | undefined
    beforeAll(async () => {
      open = await openField(stage)
    })
    afterAll(async () => {
      if (open !== undefined) await closeField(open)
    })
    const field = (): Field => {
      if (open === undefined) throw new Error('outside of a test')
      return open
    }
    held(stage, field)
    handedOver(stage, field)
    oneDown(stage)
  })
}

async function openField(stage: Stage): Promise<Field> {
  const servers = await Promise.all(PLACES.map(() => startRedis()))
  const ports = servers.map(({ port }) => port)
  return { servers, java: await stage.startJava(ports, { commandMs: COMMAND_MS }) }
}

async function closeField({ servers, java }: Field): Promise<void> {
  await java.kill()
  await Promise.all(servers.map((server) => server.stop()))
}

async function sides(scene: Scene, field: Field): Promise<Sides> {
  const { servers, java } = field
  const members = await Promise.all(servers.map(({ port }) => scene.holdfast({}, port)))
  const [first] = members
  if (first === undefined) throw new Error('there is no server')
  const ref = multiReference(
    PLACES.map((place) => onServer(place, reference('getLock', scene.name))),
    'getRedLock',
  )
  return {
    field,
    members,
    java: new JavaLock(java.thread(scene.name), ref),
    node: first.redLock(scene.name, members),
  }
}

/** Java's lock of that name on one of the servers, as another thread has it. */
function single(scene: Scene, { field }: Sides, place: number): JavaLock {
  const thread = field.java.thread(`${scene.name}-single`)
  return new JavaLock(thread, onServer(place, reference('getLock', scene.name)))
}

/** On which servers somebody has the lock. */
function taken({ name }: Scene, { servers }: Field): Promise<boolean[]> {
  return Promise.all(servers.map(async (server) => (await server.send('EXISTS', name)) === 1))
}

function untilTaken(scene: Scene, field: Field, places: readonly boolean[]): Promise<void> {
  return eventually(
    async () => String(await taken(scene, field)) === String(places),
    `taken: ${String(places)}`,
  )
}

function held(stage: Stage, field: () => Field): void {
  stage.test('Java holds it: Node gets neither it nor the lock on any server', async (scene) => {
    const both = await sides(scene, field())
    const { java, node, members } = both
    await java.lock(AGES_MS)
    expect(await node.tryAcquire()).toBeNull()
    for (const member of members) expect(await member.lock(scene.name).tryAcquire()).toBeNull()
    await java.unlock()
    await untilTaken(scene, both.field, NONE)
    const lease = await node.tryAcquire()
    expect(lease?.held).toBe(true)
    await untilTaken(scene, both.field, ALL)
  })

  stage.test('Node holds it: Java gets neither it nor the lock on any server', async (scene) => {
    const both = await sides(scene, field())
    const { java, node } = both
    const lease = await node.acquire({ leaseTime: AGES_MS })
    expect(await java.tryLock(0, AGES_MS)).toBe(false)
    await untilTaken(scene, both.field, ALL)
    for (const place of PLACES) expect(await single(scene, both, place).tryLock()).toBe(false)
    expect(await lease.release()).toBe('released')
    expect(await java.tryLock(0, AGES_MS)).toBe(true)
    expect(await taken(scene, both.field)).toEqual(ALL)
  })

  stage.test('one server is taken by somebody: a majority is enough for either', async (scene) => {
    const both = await sides(scene, field())
    const { java, node } = both
    await single(scene, both, 1).lock(AGES_MS)
    expect(await java.tryLock(0, AGES_MS)).toBe(true)
    expect(await node.tryAcquire()).toBeNull()
    await java.unlock()
    await untilTaken(scene, both.field, [false, true, false])
    const lease = await node.acquire({ leaseTime: AGES_MS })
    expect(await java.tryLock(0, AGES_MS)).toBe(false)
    expect(await lease.release()).toBe('released')
  })

  stage.test('two servers are taken: neither gets it, and neither leaves anything', async (scene) => {
    const both = await sides(scene, field())
    for (const place of [0, 2]) await single(scene, both, place).lock(AGES_MS)
    expect(await both.node.tryAcquire()).toBeNull()
    expect(await both.java.tryLock(0, AGES_MS)).toBe(false)
    await untilTaken(scene, both.field, [true, false, true])
  })

  stage.test('kept by the watchdogs; lost when Java takes two of the servers by force', async (scene) => {
    const both = await sides(scene, field())
    const lease = await both.node.acquire()
    await sleep(1.3 * WATCHDOG_MS)
    expect([lease.held, await both.java.tryLock()]).toEqual([true, false])
    await single(scene, both, 0).forceUnlock()
    await single(scene, both, 1).forceUnlock()
    await eventually(() => lease.signal.aborted, 'the loss is seen')
    expect(['stolen', 'expired']).toContain(await lease.release())
    await untilTaken(scene, both.field, NONE)
    expect(await both.java.tryLock()).toBe(true)
  })
}

function handedOver(stage: Stage, field: () => Field): void {
  stage.test('each waits for the other, and hears it', async (scene) => {
    const both = await sides(scene, field())
    const { java, node } = both
    await java.lock(AGES_MS)
    const inNode = watch(node.acquire({ leaseTime: AGES_MS, pollInterval: AGES_MS }))
    await untilHeard(scene, both.field)
    expect(inNode.settled).toBe(false)
    await java.unlock()
    const lease = await inNode.promise
    const inJava = watch(java.tryLock(AGES_MS / 2, AGES_MS))
    await sleep(100)
    expect(inJava.settled).toBe(false)
    await lease.release()
    expect(await inJava.promise).toBe(true)
  })

  stage.test('Java and Node in turn: nobody meets anybody', async (scene) => {
    const both = await sides(scene, field())
    // Java's own looks inside go to its first server.
    const link = await raw(both.field.servers[0]?.port ?? 0)
    scene.atEnd(() => link[Symbol.asyncDispose]())
    await expectPeace(scene, {
      java: [{ reference: both.java.reference, kind: 'alone', thread: both.java.thread }],
      node: [{ enter: () => both.node.acquire({ leaseTime: AGES_MS }), kind: 'alone' }],
      leaseMs: AGES_MS,
      link,
    })
  })
}

/** Waits until somebody listens to the lock's channel on each server. */
function untilHeard({ name }: Scene, { servers }: Field): Promise<void> {
  const channel = `redisson_lock__channel:{${name}}`
  return eventually(async () => {
    const replies = await Promise.all(servers.map((server) => server.send('PUBSUB', 'NUMSUB', channel)))
    return replies.every((reply) => Array.isArray(reply) && Number(reply[1]) >= 1)
  }, 'somebody listens on each server')
}

function oneDown(stage: Stage): void {
  stage.test('a server is down: the other two decide, for both, and hand over', async (scene) => {
    const field = await openField(stage)
    scene.atEnd(() => closeField(field))
    const both = await sides(scene, field)
    const { java, node } = both
    await java.lock(AGES_MS)
    await field.servers[2]?.stop()
    expect(await node.tryAcquire()).toBeNull()
    const waiting = watch(node.acquire({ leaseTime: AGES_MS }))
    await sleep(100)
    expect(waiting.settled).toBe(false)
    await java.unlock()
    const lease = await waiting.promise
    expect(await java.tryLock(0, AGES_MS)).toBe(false)
    const inJava = watch(java.tryLock(AGES_MS / 2, AGES_MS))
    await sleep(100)
    expect(inJava.settled).toBe(false)
    expect(await lease.release()).toBe('released')
    expect(await inJava.promise).toBe(true)
    expect(await node.tryAcquire()).toBeNull()
  })
}
