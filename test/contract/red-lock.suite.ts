import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Holdfast, HoldfastOptions, RedLock } from '../../src/index.js'
import { hear, hearWarnings } from './hear.js'
import type { RedWorld } from './red-world.js'
import { Gauge, turns, Watched } from './together.js'
import { STRANGER } from './world.js'

/** All that a lock over three servers promises. */
export function redLockSuite(openWorld: () => Promise<RedWorld>): void {
  let opened: RedWorld | undefined
  let count = 0
  const world = (): RedWorld => {
    if (opened === undefined) throw new Error('outside of a test')
    return opened
  }
  const newName = () => `red:${(count += 1)}`
  const made = async (name: string, options?: HoldfastOptions) => {
    const members = await world().process(options)
    const [first] = members
    if (first === undefined) throw new Error('there is no server')
    return { members, first, red: first.redLock(name, members) }
  }
  const redOn = async (name: string, options?: HoldfastOptions): Promise<RedLock> =>
    (await made(name, options)).red
  const taken = async (name: string) => (await world().read(name)).map((one) => one !== undefined)
  const untilTaken = (name: string, places: readonly boolean[]) =>
    world().until(async () => String(await taken(name)) === String(places), `taken: ${String(places)}`)
  const NONE = [false, false, false]
  const ALL = [true, true, true]

  describe('RedLock', () => {
    beforeAll(async () => {
      opened = await openWorld()
    })
    afterAll(() => opened?.end())
    majority()
    contention()
    lease()
    inside()
    looks()
    members()
  })

  function majority(): void {
    test('takes all servers under one owner, and releases all', async () => {
      const name = newName()
      const red = await redOn(name)
      const held = await red.acquire()
      expect(held).toMatchObject({ lock: name, held: true, holdCount: 1 })
      await untilTaken(name, ALL)
      expect(await world().read(name)).toEqual([0, 1, 2].map(() => ({ [held.owner]: 1 })))
      expect(held.remaining).toBeGreaterThan(20_000)
      expect(await held.release()).toBe('released')
      expect(held).toMatchObject({ held: false, holdCount: 0, remaining: 0 })
      await untilTaken(name, NONE)
    })

    test('is a new owner each time', async () => {
      const red = await redOn(newName())
      const first = await red.acquire()
      await first.release()
      const second = await red.acquire()
      expect(second.owner).not.toBe(first.owner)
    })

    for (const place of [0, 1, 2])
      test(`is had although somebody else has it on server ${place}, and leaves that alone`, async () => {
        const name = newName()
        await world().take(place, name, STRANGER)
        const red = await redOn(name)
        const held = await red.acquire({ waitTime: 0 })
        expect(await held.release()).toBe('released')
        await untilTaken(
          name,
          [0, 1, 2].map((i) => i === place),
        )
        expect((await world().read(name))[place]).toEqual({ [STRANGER]: 1 })
      })

    test('is not had when somebody else has two of three; the third is given back', async () => {
      const name = newName()
      await world().take(0, name, STRANGER)
      await world().take(1, name, STRANGER)
      const red = await redOn(name)
      expect(await world().settled(red.tryAcquire())).toBeNull()
      await untilTaken(name, [true, true, false])
      await expect(world().settled(red.acquire({ waitTime: 0 }))).rejects.toMatchObject({
        code: 'HOLDFAST_WAIT_TIMEOUT',
        holder: STRANGER,
      })
    })

    test('shuts out, and is shut out by, plain locks on a majority', async () => {
      const name = newName()
      const { red, members } = await made(name)
      const [one, two] = (await world().process()).map((holdfast) => holdfast.lock(name))
      const held = await red.acquire()
      await untilTaken(name, ALL)
      expect(await one?.tryAcquire()).toBeNull()
      await held.release()
      await untilTaken(name, NONE)
      await one?.acquire()
      expect(await red.tryUsing(() => 'in')).toEqual({ acquired: true, value: 'in' })
      await two?.acquire()
      expect(await world().settled(red.tryAcquire())).toBeNull()
      expect(members.map((member) => member.stats().compensating)).toEqual([0, 0, 0])
    })
  }

  function contention(): void {
    test('waits for its holder, and is woken by the release', async () => {
      const name = newName()
      const held = await redOn(name).then((red) => red.acquire())
      const red = await redOn(name)
      const wakeups = hear('holdfast:wakeup', name)
      const waiting = new Watched(red.acquire())
      await world().pass(120)
      expect(waiting.state).toBe('pending')
      await held.release()
      const next = await world().settled(waiting.promise)
      expect(next.held).toBe(true)
      expect(wakeups.at(-1)?.cause).toBe('message')
      await next.release()
    })

    test('waits no longer than waitTime, and leaves nothing behind', async () => {
      const name = newName()
      const held = await redOn(name).then((red) => red.acquire())
      const { red, members } = await made(name)
      await expect(world().settled(red.acquire({ waitTime: 150 }))).rejects.toMatchObject({
        code: 'HOLDFAST_WAIT_TIMEOUT',
        holder: held.owner,
      })
      expect(await world().settled(red.tryAcquire({ waitTime: 100 }))).toBeNull()
      const idle = { held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 }
      await world().until(
        () => members.every((member) => JSON.stringify(member.stats()) === JSON.stringify(idle)),
        'all members are idle',
      )
      await held.release()
    })

    test('ends its waiting when the signal aborts', async () => {
      const name = newName()
      await redOn(name).then((red) => red.acquire())
      const red = await redOn(name)
      const controller = new AbortController()
      const waiting = red.acquire({ signal: controller.signal })
      await world().pass(60)
      controller.abort(new Error('gone'))
      await expect(world().settled(waiting)).rejects.toThrow('gone')
    })

    test('callers of three processes: never two inside, and all get through', async () => {
      const name = newName()
      const reds = [await redOn(name), await redOn(name), await redOn(name)]
      const gauge = new Gauge()
      const callers = Array.from({ length: 24 }, (_, i) =>
        reds[i % 3]?.using(() => gauge.through(() => turns())),
      )
      await world().settled(Promise.all(callers))
      expect(gauge).toMatchObject({ most: 1, total: 24 })
      await untilTaken(name, NONE)
    })

    test('an attempt that took a minority only sets off no others', async () => {
      const name = newName()
      await world().take(0, name, STRANGER)
      await world().take(1, name, STRANGER)
      const waiting = await Promise.all([redOn(name), redOn(name)])
      const heard = hear('holdfast:wakeup', name)
      const controller = new AbortController()
      const waiters = waiting.map((red) => red.acquire({ signal: controller.signal }))
      // Once they have subscribed, each gives the third one back and tells it.
      await world().pass(300)
      const before = heard.length
      await world().pass(600)
      expect(heard.length - before).toBeLessThan(3)
      controller.abort(new Error('enough'))
      await world().settled(Promise.allSettled(waiters))
    })
  }

  function lease(): void {
    test('outlives the loss of one server', async () => {
      const name = newName()
      const red = await redOn(name, { lockWatchdogTimeout: 900 })
      const held = await red.acquire()
      await untilTaken(name, ALL)
      await world().remove(1, name)
      await world().pass(1_200)
      expect(held).toMatchObject({ held: true, holdCount: 1 })
      expect(held.signal.aborted).toBe(false)
      expect(await held.release()).toBe('released')
    })

    test('is lost with the second of three, once', async () => {
      const name = newName()
      const lost = hear('holdfast:lost', name)
      const red = await redOn(name, { lockWatchdogTimeout: 900 })
      const held = await red.acquire()
      await untilTaken(name, ALL)
      await world().remove(1, name)
      await world().take(2, name, STRANGER)
      await world().until(() => held.signal.aborted, 'the signal aborts')
      expect(held.signal.reason).toMatchObject({ code: 'HOLDFAST_LEASE_LOST', reason: 'stolen', lock: name })
      expect(held).toMatchObject({ held: false, remaining: 0, holdCount: 0 })
      expect(lost).toMatchObject([{ owner: held.owner, reason: 'stolen' }])
      expect(await held.release()).toBe('stolen')
      await untilTaken(name, [false, false, true])
    })

    test('with a lease time ends by itself, and is not renewed', async () => {
      const name = newName()
      const red = await redOn(name)
      const held = await red.acquire({ leaseTime: 400 })
      expect(held.remaining).toBeLessThan(400)
      await world().until(() => held.signal.aborted, 'the signal aborts')
      expect(held.signal.reason).toMatchObject({ reason: 'expired' })
      expect(await held.release()).toBe('expired')
    })

    test('extend lasts on a majority, also where one server has lost it', async () => {
      const name = newName()
      const red = await redOn(name)
      const held = await red.acquire({ leaseTime: 5_000 })
      await untilTaken(name, ALL)
      await world().remove(0, name)
      await held.extend(60_000)
      expect(held.remaining).toBeGreaterThan(50_000)
      expect(await held.release()).toBe('released')
    })

    test('extend throws LeaseLostError when a majority has lost it', async () => {
      const name = newName()
      const red = await redOn(name)
      const held = await red.acquire({ leaseTime: 5_000 })
      await untilTaken(name, ALL)
      await world().remove(0, name)
      await world().remove(1, name)
      await expect(held.extend(60_000)).rejects.toMatchObject({ code: 'HOLDFAST_LEASE_LOST', lock: name })
      expect(held.held).toBe(false)
    })

    test('minHold closes a majority for the rest of it', async () => {
      const name = newName()
      const red = await redOn(name)
      const held = await red.acquire({ minHold: 40_000 })
      expect(await held.release()).toBe('released')
      expect(await world().settled(red.tryAcquire())).toBeNull()
    })

    test('maxHold ends it', async () => {
      const name = newName()
      const red = await redOn(name)
      const held = await red.acquire({ maxHold: 100 })
      await world().until(() => held.signal.aborted, 'the signal aborts')
      expect(held.signal.reason).toMatchObject({ reason: 'max-hold' })
      expect(await held.release()).toBe('released')
    })

    test('using tells a loss that its work did not notice', async () => {
      const name = newName()
      const red = await redOn(name)
      const work = red.using(async () => {
        await untilTaken(name, ALL)
        await world().remove(0, name)
        await world().remove(1, name)
        return 'the value'
      })
      await expect(work).rejects.toMatchObject({ code: 'HOLDFAST_LEASE_LOST', value: 'the value' })
    })
  }

  function inside(): void {
    test('is entered once more inside', async () => {
      const name = newName()
      const { red } = await made(name)
      await red.using(async (outer) => {
        await untilTaken(name, ALL)
        const again = await red.using((inner) => [inner.holdCount, inner.owner])
        expect(again).toEqual([2, outer.owner])
        expect(outer).toMatchObject({ held: true, holdCount: 1 })
      })
      await untilTaken(name, NONE)
    })

    test('nested use gets in while others of the process wait', async () => {
      const name = newName()
      const { red } = await made(name)
      const order: string[] = []
      const outer = await red.acquire()
      const other = red.using(() => order.push('other'))
      await world().pass(60)
      await world().settled(outer.run(() => red.using(() => order.push('nested'))))
      await outer.release()
      await world().settled(other)
      expect(order).toEqual(['nested', 'other'])
    })

    test('explicitly, by within', async () => {
      const name = newName()
      const { red, first } = await made(name)
      const held = await red.acquire()
      expect(await red.using({ within: held }, (inner) => inner.holdCount)).toBe(2)
      const foreign = await first.lock(newName()).acquire()
      await expect(red.acquire({ within: foreign })).rejects.toThrow(/within must be a lease of/)
    })

    test('siblings inside take turns', async () => {
      const name = newName()
      const { red } = await made(name)
      const gauge = new Gauge()
      const work = red.using(() =>
        Promise.all([1, 2, 3].map(() => red.using(() => gauge.through(() => turns())))),
      )
      await world().settled(work)
      expect(gauge).toMatchObject({ most: 1, total: 3 })
    })

    test('is one of the locks of a multi-lock', async () => {
      const [name, other] = [newName(), newName()]
      const { red, first, members } = await made(name)
      // The same one again: it is taken once.
      const multi = first.multiLock([first.lock(other), red, first.redLock(name, members)])
      const held = await world().settled(multi.acquire())
      expect(held.leases.map(({ lock }) => lock)).toEqual([other, name])
      expect(await red.isLocked()).toBe(true)
      expect(await world().settled(red.tryAcquire())).toBeNull()
      expect(await world().settled(held.release())).toBe('released')
      await untilTaken(name, NONE)
    })
  }

  function looks(): void {
    test('isLocked, isHeldBy, remainingTime, forceRelease say what a majority says', async () => {
      const name = newName()
      const red = await redOn(name)
      expect([await red.isLocked(), await red.remainingTime(), await red.forceRelease()]).toEqual([
        false,
        0,
        false,
      ])
      await world().take(0, name, STRANGER)
      expect([await red.isLocked(), await red.isHeldBy(STRANGER), await red.remainingTime()]).toEqual([
        false,
        false,
        0,
      ])
      await world().take(2, name, STRANGER)
      expect([await red.isLocked(), await red.isHeldBy(STRANGER)]).toEqual([true, true])
      expect(await red.remainingTime()).toBeGreaterThan(40_000)
      expect(await red.forceRelease()).toBe(true)
      await untilTaken(name, NONE)
    })
  }

  function members(): void {
    test('refuses an empty list, one Holdfast twice, what is none, and unknown options', async () => {
      const { first, members } = await made(newName())
      expect(() => first.redLock('x', [])).toThrow(RangeError)
      expect(() => first.redLock('x', [first, first])).toThrow(RangeError)
      const none: unknown = [first, {}]
      expect(() => first.redLock('x', none as Holdfast[])).toThrow(TypeError)
      expect(() => first.redLock('x', first as unknown as Holdfast[])).toThrow(TypeError)
      expect(() => first.redLock('', members)).toThrow(RangeError)
      expect(() => first.redLock('x', members, { memberTimeout: 0 })).toThrow(RangeError)
      expect(() => first.redLock('x', members, { timeout: 5 } as object)).toThrow(/Unknown key 'timeout'/)
    })

    test('warns once when two of them are one server', async () => {
      const name = newName()
      const [first, second] = [await world().process(), await world().process()]
      const pair = [first[0], second[0], first[1]].filter((one) => one !== undefined)
      const diagnoses = hear('holdfast:diagnosis', name)
      const warnings = hearWarnings(name)
      const red = pair[0]?.redLock(name, pair)
      expect(await world().settled(Promise.resolve(red?.tryAcquire()))).toBeDefined()
      await world().until(() => warnings.length > 0, 'it is told')
      await red?.tryAcquire()
      await world().pass(50)
      expect(warnings).toMatchObject([{ name: 'HoldfastWarning', code: 'HOLDFAST_MEMBERS' }])
      expect(diagnoses).toMatchObject([
        {
          kind: 'members',
          message: expect.stringMatching(/Members 0 and 1 .* are the same server/) as string,
        },
      ])
    })

    test('says that an even number does not pay', async () => {
      const name = newName()
      const { members, first } = await made(name)
      const diagnoses = hear('holdfast:diagnosis', name)
      const held = await first.redLock(name, members.slice(0, 2)).acquire()
      expect(diagnoses).toMatchObject([{ kind: 'members' }])
      await held.release()
    })

    test('is closed with the Holdfast that made it', async () => {
      const name = newName()
      const { red, first } = await made(name)
      const other = await redOn(name)
      await other.acquire()
      const waiting = new Watched(red.acquire())
      await world().pass(30)
      await world().settled(first.close({ drain: 0 }))
      await expect(world().settled(waiting.promise)).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
      await expect(red.acquire()).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
      await expect(red.isLocked()).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
    })
  }
}
