import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../src/clock.js'
import { Tenure, wallOffset } from '../../src/lease/tenure.js'

const target = { family: 'read', name: 'catalogue', title: 'catalogue' } as const

/** A tenure whose server's word is good for 10 s only. */
function grant(ttlMs: number) {
  const clock = new ManualClock()
  const tenure = new Tenure({
    target,
    owner: 'client:1',
    once: true,
    clock,
    drift: 0,
    trustMs: 10_000,
    confirmation: { sentAtMs: clock.now(), wallOffsetMs: wallOffset(clock), ttlMs },
    onEnd: () => undefined,
  })
  const confirm = (ms: number, sentAtMs = clock.now()) => {
    tenure.confirm({ sentAtMs, wallOffsetMs: wallOffset(clock), ttlMs: ms })
  }
  return { clock, tenure, confirm }
}

describe('a word of the server that is good for a time only', () => {
  test('does not matter for shorter leases: nothing has to be asked again', () => {
    const { tenure } = grant(5_000)
    expect([tenure.deadlineMs, tenure.renewable]).toEqual([4_998, false])
  })

  test('cuts the belief in longer ones, which have to be confirmed again and again', () => {
    const { clock, tenure, confirm } = grant(60_000)
    expect([tenure.deadlineMs, tenure.renewable]).toEqual([9_998, true])
    for (let at = 5_000; at < 50_000; at += 5_000) {
      clock.block(5_000)
      confirm(tenure.wantedTtl(1))
      expect(tenure.deadlineMs).toBe(at + 9_998)
    }
  })

  test('asks for what is left of the lease, and ends with it', () => {
    const { clock, tenure, confirm } = grant(18_000)
    clock.block(5_000)
    expect(tenure.wantedTtl(1)).toBe(12_998)
    confirm(tenure.wantedTtl(1))
    clock.block(5_000)
    expect(tenure.wantedTtl(1)).toBe(7_998)
    confirm(tenure.wantedTtl(1))
    expect(tenure.deadlineMs).toBeGreaterThan(17_900)
    expect(tenure.deadlineMs).toBeLessThanOrEqual(17_998)
    expect(tenure.renewable).toBe(false)
    clock.block(8_000)
    expect(tenure.held).toBe(false)
  })

  test('is never moved back by an answer to an older question', () => {
    const { clock, tenure, confirm } = grant(60_000)
    clock.block(6_000)
    confirm(50_000)
    confirm(50_000, 3_000)
    expect(tenure.deadlineMs).toBe(15_998)
  })

  test('ends the belief when nothing is heard', () => {
    const { clock, tenure } = grant(60_000)
    clock.block(9_998)
    expect(tenure.held).toBe(false)
    expect(tenure.lossReason).toBe('expired')
  })
})
