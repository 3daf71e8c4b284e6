import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../src/clock.js'
import type { LossReason } from '../../src/errors.js'
import { driftAllowance, Tenure, wallOffset, type TenureMember } from '../../src/lease/tenure.js'

const target = { family: 'lock', name: 'orders', title: 'orders' } as const

const grant = (ttlMs = 10_000, clock = new ManualClock()) => {
  const ended: Tenure[] = []
  const tenure = new Tenure({
    target,
    owner: 'client:1',
    once: true,
    clock,
    drift: 0.01,
    confirmation: { sentAtMs: clock.now(), wallOffsetMs: wallOffset(clock), ttlMs },
    onEnd: (over) => ended.push(over),
  })
  const confirm = (ms: number) => {
    tenure.confirm({ sentAtMs: clock.now(), wallOffsetMs: wallOffset(clock), ttlMs: ms })
  }
  return { clock, tenure, ended, confirm }
}

const member = (maxHoldAtMs = Infinity): TenureMember & { readonly told: LossReason[] } => {
  const told: LossReason[] = []
  return { maxHoldAtMs, told, onLost: (reason) => told.push(reason) }
}

describe('the deadline', () => {
  test('is before the end of the TTL, counted from before the sending', () => {
    const clock = new ManualClock()
    clock.block(1_000)
    const tenure = new Tenure({
      target,
      owner: 'client:1',
      once: true,
      clock,
      drift: 0.01,
      confirmation: { sentAtMs: 300, wallOffsetMs: wallOffset(clock), ttlMs: 10_000 },
      onEnd: () => undefined,
    })
    expect(tenure.deadlineMs).toBe(300 + 10_000 - 102)
  })

  test('ends the tenure by itself when it is looked at', () => {
    const { clock, tenure, ended } = grant()
    clock.block(9_897)
    expect([tenure.held, tenure.remainingMs]).toEqual([true, 1])
    clock.block(1)
    expect([tenure.held, tenure.remainingMs]).toEqual([false, 0])
    expect(tenure).toMatchObject({ state: 'lost', lossReason: 'expired' })
    expect(ended).toEqual([tenure])
  })

  test('moves on with a confirmation, and never back', () => {
    const { clock, tenure, confirm } = grant()
    clock.block(5_000)
    confirm(10_000)
    expect(tenure.deadlineMs).toBe(14_898)
    confirm(1)
    expect(tenure.deadlineMs).toBe(14_898)
    expect(tenure.held).toBe(true)
  })

  test('is not brought back by a confirmation that comes past it', () => {
    const { clock, tenure, confirm } = grant(1_000)
    clock.block(1_000)
    confirm(10_000)
    expect(tenure).toMatchObject({ state: 'lost', lossReason: 'expired' })
  })

  test('leaves an allowance that is never more than half of the TTL', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10 ** 9 }),
        fc.double({ min: 0, max: 0.5, noNaN: true }),
        (ttlMs, drift) => {
          const allowance = driftAllowance(ttlMs, drift)
          expect(allowance).toBeGreaterThan(0)
          expect(allowance).toBeLessThanOrEqual(ttlMs / 2)
        },
      ),
    )
  })
})

describe('a machine that slept', () => {
  test('puts the tenure in doubt until it is confirmed', () => {
    const { clock, tenure, confirm } = grant()
    clock.sleepMachine(102)
    expect([tenure.held, tenure.doubtful]).toEqual([true, false])
    clock.sleepMachine(1)
    expect([tenure.held, tenure.doubtful, tenure.state]).toEqual([false, true, 'held'])
    confirm(10_000)
    expect([tenure.held, tenure.doubtful]).toEqual([true, false])
  })

  test('makes the deadline from before meaningless: only what the server confirmed counts', () => {
    const { clock, tenure, confirm } = grant(60_000)
    clock.sleepMachine(30_000)
    confirm(10_000)
    expect(tenure.held).toBe(true)
    expect(tenure.remainingMs).toBe(10_000 - 102)
  })

  test('a short confirmation without sleep does not narrow what is allowed for clocks', () => {
    const { clock, tenure, confirm } = grant(60_000)
    confirm(1)
    clock.sleepMachine(500)
    expect([tenure.held, tenure.doubtful]).toEqual([true, false])
  })

  test('is also known from elsewhere', () => {
    const { tenure, confirm } = grant()
    tenure.doubt()
    expect(tenure.held).toBe(false)
    confirm(5_000)
    expect(tenure.held).toBe(true)
    expect(tenure.remainingMs).toBe(5_000 - 52)
  })
})

test('asks for a TTL that reaches at least to its own deadline', () => {
  const { clock, tenure } = grant(60_000)
  expect(tenure.wantedTtl(90_000)).toBe(90_000)
  expect(tenure.wantedTtl(1)).toBe(60_000 - 602)
  clock.block(59_398.5)
  expect(tenure.wantedTtl(0)).toBe(0)
})

describe('the end', () => {
  test('by loss is told to every member, once, also to those that leave meanwhile', () => {
    const { tenure, ended } = grant()
    const [one, two] = [member(), member()]
    tenure.join(one)
    tenure.join(two)
    tenure.lose('stolen')
    tenure.lose('expired')
    tenure.end()
    expect([one.told, two.told]).toEqual([['stolen'], ['stolen']])
    expect(tenure).toMatchObject({ state: 'lost', lossReason: 'stolen' })
    expect(ended).toHaveLength(1)
  })

  test('by release is not a loss any more', () => {
    const { clock, tenure, ended } = grant()
    const one = member()
    tenure.join(one)
    tenure.end()
    tenure.lose('stolen')
    clock.block(20_000)
    expect(tenure.held).toBe(false)
    expect(one.told).toEqual([])
    expect(tenure).toMatchObject({ state: 'ended', lossReason: undefined })
    expect(ended).toHaveLength(1)
  })
})

test('the shortest maxHold of its members counts', () => {
  const { tenure } = grant()
  const [short, long, none] = [member(50), member(80), member()]
  for (const one of [none, short, long]) tenure.join(one)
  expect(tenure.maxHoldAtMs).toBe(50)
  expect(tenure.part(short)).toBe(false)
  expect(tenure.maxHoldAtMs).toBe(80)
  expect(tenure.part(long)).toBe(false)
  expect(tenure.maxHoldAtMs).toBe(Infinity)
  expect(tenure.part(none)).toBe(true)
  expect(tenure.part(none)).toBe(true)
})

describe('commands of one owner', () => {
  test('go out one after the other, also behind one that fails, and the last one last', async () => {
    const { tenure } = grant()
    const order: string[] = []
    const command =
      (name: string, fails = false) =>
      async () => {
        order.push(`${name} out`)
        await new Promise((resolve) => setImmediate(resolve))
        order.push(`${name} in`)
        if (fails) throw new Error(name)
      }
    const all = [
      tenure.serially(command('a')),
      tenure.serially(command('b', true)),
      tenure.serially(command('c')),
      tenure.lastly(command('last')),
    ]
    const outcomes = await Promise.allSettled(all)
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
    expect(order).toEqual(['a', 'b', 'c', 'last'].flatMap((name) => [`${name} out`, `${name} in`]))
  })

  test('go out at once when nothing is under way', async () => {
    const { tenure } = grant()
    let sent = 0
    const send = () => {
      sent += 1
      return Promise.resolve()
    }
    await tenure.serially(send)
    const second = tenure.serially(send)
    expect(sent).toBe(2)
    await second
    void tenure.lastly(send)
    expect(sent).toBe(3)
  })
})
