/** Ownership and release, group B: users with few rights. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Holdfast } from '../../src/index.js'
import { IOREDIS_6, NODE_REDIS_6, open, type Variant } from '../clients/variants.js'
import { eventually } from '../support/eventually.js'
import { openScene, type Scene } from './scene.js'
import { more, untilUndone } from './support/around.js'

const NAME = 'app:42'
const FAMILIES = ['lock', 'mutex'] as const

/** The rights that the documents ask for. */
function documentedRights(): readonly string[] {
  const page = readFileSync(new URL('../../docs/protocol.md', import.meta.url), 'utf8')
  const block = /## Permissions \(ACL\)\s+```\n([^`]*)```/.exec(page)?.[1] ?? ''
  return block.replace('~<your names>', '~app:*').match(/[+~&]\S+/g) ?? []
}

/** A Holdfast for a user with these rights and no others, but for what the client sends when it connects. */
async function holdfastOf(scene: Scene, variant: Variant, rights: readonly string[]): Promise<Holdfast> {
  const ofClients = ['+info', '+client', '+hello']
  await scene.command('ACL', 'SETUSER', 'app', 'reset', 'on', '>secret', ...ofClients, ...rights)
  const client = await open(variant, scene.port, { username: 'app', password: 'secret' })
  scene.atEnd(() => client.destroy())
  return scene.holdfast({ lockWatchdogTimeout: 900, commandTimeout: 1_000 }, client.raw as object)
}

describe.each([IOREDIS_6, NODE_REDIS_6])('with $name', (variant) => {
  test.each(FAMILIES)('fault 24: a %s needs no more than the documented rights', async (family) => {
    await using scene = await openScene()
    const diagnoses = scene.hear('holdfast:diagnosis')
    const woken = scene.hear('holdfast:wakeup')
    const renewed = scene.hear('holdfast:renew:ok')
    const holdfast = await holdfastOf(scene, variant, documentedRights())
    const lock = holdfast[family](NAME)
    const lease = await lock.acquire()
    await more(renewed, NAME, 1)
    if (family === 'lock') {
      const nested = await holdfast.lock(NAME).acquire({ within: lease })
      expect(await nested.release()).toBe('still-held')
    }
    await lease.extend(60_000)
    expect(await lock.isLocked()).toBe(true)
    expect(await lock.remainingTime()).toBeGreaterThan(50_000)

    const waiter = await holdfastOf(scene, variant, documentedRights())
    const waiting = waiter[family](NAME).acquire({ pollInterval: 3_600_000 })
    await eventually(() => woken.some(({ cause }) => cause === 'resync'), 'the waiter listens')
    expect(await lease.release()).toBe('released')
    await waiting
    expect(await lock.forceRelease()).toBe(true)

    // A tombstone, too, is allowed.
    await scene.command('CLIENT', 'PAUSE', 200, 'WRITE')
    const undone = holdfast[family]('app:43').tryAcquire({ signal: AbortSignal.timeout(50) })
    await expect(undone).rejects.toThrow(/timeout/)
    await untilUndone(holdfast)
    expect(await scene.command('EXISTS', 'app:43')).toBe(0)
    expect(await scene.command('KEYS', '*:{app:43}:*')).toHaveLength(1)
    expect(diagnoses.map(({ kind }) => kind).filter((kind) => kind !== 'renewal-late')).toEqual([
      'compensating',
    ])
  })

  test.each(FAMILIES)('fault 24: what a %s may not do is said at its first use', async (family) => {
    await using scene = await openScene()
    const rights = documentedRights()
    for (const missing of ['+evalsha', '~app:*', '+exists']) {
      const holdfast = await holdfastOf(
        scene,
        variant,
        rights.filter((right) => right !== missing),
      )
      const error: unknown = await holdfast[family](NAME)
        .acquire()
        .catch((reason: unknown) => reason)
      expect(error, missing).toMatchObject({ code: 'HOLDFAST_UNAVAILABLE', lock: NAME })
      expect((error as Error).message, missing).toMatch(/NOPERM|can't run this command/)
      await holdfast.close({ drain: 0 })
    }
    expect(await scene.command('EXISTS', NAME)).toBe(0)
  })

  test.each(FAMILIES)(
    'fault 25: a %s whose channel is forbidden is freed and found by polling',
    async (family) => {
      await using scene = await openScene()
      const diagnoses = scene.hear('holdfast:diagnosis')
      const rights = documentedRights().filter((right) => !right.startsWith('&'))
      const holdfast = await holdfastOf(scene, variant, rights)
      const lock = holdfast[family](NAME)
      const lease = await lock.acquire()
      // Nothing but a look by itself can tell this waiter.
      const waiting = (await holdfastOf(scene, variant, rights))[family](NAME).acquire()
      await eventually(() => diagnoses.some(({ kind }) => kind === 'subscribe-failed'), 'it may not listen')
      expect(await lease.release()).toBe('released')
      expect((await waiting).held).toBe(true)
      expect(diagnoses.map(({ lock: name, kind }) => [name, kind])).toEqual([
        [NAME, 'subscribe-failed'],
        [NAME, 'unannounced'],
      ])
      expect(await lock.forceRelease()).toBe(true)
      expect(await scene.command('EXISTS', NAME)).toBe(0)
    },
  )
})
