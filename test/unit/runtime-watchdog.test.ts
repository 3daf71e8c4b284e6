/** The watchdog: renewal, deadlines, and what a late tick or a late reply may do. */
import { expect, it } from 'vitest'
import { LeaseLostError, NotHeldError } from '../../src/errors.js'
import { elsewhere, silence, stage, unavailable, watched, type Stage } from '../support/staged-engine.js'

it('a lease whose maxHold ends when its renewal is due is renewed early at most once', async () => {
  const { clock, lock, engine } = stage()
  await lock('early').acquire()
  await clock.advance(500)
  const lease = await lock('late').acquire({ maxHold: 10_000 })
  await clock.advance(9_500)
  expect(engine.asked.filter(({ op }) => op === 'lock.renew')).toHaveLength(1)
  expect(lease.held).toBe(true)
  await clock.advance(500)
  expect(lease.signal.reason).toMatchObject({ reason: 'max-hold' })
})

it('a renewal whose reply is judged past the deadline does not bring the lease back', async () => {
  const scene = stage({ lockWatchdogTimeout: 3_000 })
  const answer = withheld(scene, 'lock.renew')
  const lease = await scene.lock().acquire()
  await scene.clock.advance(1_000)
  scene.clock.block(2_200)
  answer()
  await turn()
  expect(lease.held).toBe(false)
  expect(lease.signal.aborted).toBe(true)
})

it('an extension whose reply is judged past the deadline does not bring the lease back', async () => {
  const scene = stage({ lockWatchdogTimeout: 3_000 })
  const answer = withheld(scene, 'lock.renew')
  const lease = await scene.lock().acquire()
  const extension = watched(lease.extend(60_000))
  await turn()
  scene.clock.block(3_000)
  answer()
  await turn()
  expect(extension.error).toBeInstanceOf(LeaseLostError)
  expect(lease.held).toBe(false)
  expect(await lease.release()).toBe('expired')
  expect(await elsewhere(scene).isLocked()).toBe(false)
})

it.each(['not-applied', 'unknown'] as const)(
  'a nested watchdog lease is renewed before the end of its parent (outcome %s)',
  async (outcome) => {
    const { clock, lock, engine } = stage()
    const parent = await lock().acquire({ leaseTime: 4_000 })
    engine.direction = ({ op }, run, passage) => {
      if (op !== 'lock.acquire') return run()
      passage.sends += 1
      return unavailable(outcome)
    }
    const nested = await lock().acquire({ within: parent })
    await clock.advance(60_000)
    expect(nested.held).toBe(true)
  },
)

it('a deadline that was raised for a lease that is released meanwhile does not stop the watchdog', async () => {
  const scene = stage()
  const parent = await scene.lock().acquire({ leaseTime: 5_000 })
  const nested = await scene.lock().acquire({ within: parent, leaseTime: 4_000 })
  const other = await scene.lock('other').acquire()
  const answer = withheld(scene, 'lock.renew')
  const extension = watched(nested.extend(120_000))
  await turn()
  void nested.release()
  answer()
  await turn()
  expect(extension.error).toBeInstanceOf(NotHeldError)
  scene.engine.direction = (_operation, run) => run()
  await scene.clock.advance(60_000)
  expect([parent.held, other.held]).toEqual([true, true])
})

it('a renewal that is lost is tried again until the deadline, and the signal fires there', async () => {
  const { clock, lock, engine } = stage({ lockWatchdogTimeout: 30_000 })
  const lease = await lock().acquire()
  const { signal } = lease
  engine.direction = silence
  await clock.advance(29_697)
  expect(signal.aborted).toBe(false)
  await clock.advance(2)
  expect(signal.aborted).toBe(true)
  expect(engine.asked.filter(({ op }) => op === 'lock.renew').length).toBeGreaterThan(3)
})

/** Executes the operations of one kind at once, but keeps their replies back until the function that it gives is called. */
function withheld({ engine }: Stage, kind: string): () => void {
  const answers: (() => void)[] = []
  engine.direction = async ({ op }, run) => {
    const reply = await run()
    if (op === kind) await new Promise<void>((resolve) => answers.push(resolve))
    return reply
  }
  return () => {
    for (const answer of answers.splice(0)) answer()
  }
}

/** One turn of the event loop, the clock standing still. */
async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}

it('renewals of many locks that were taken together are spread over the period, and all come in time', async () => {
  const { clock, lock, engine } = stage({ lockWatchdogTimeout: 30_000 })
  const renewals = (): number => engine.asked.filter(({ op }) => op === 'lock.renew').length
  const leases = await Promise.all(
    Array.from({ length: 3_000 }, (_, i) => lock(`many:${String(i)}`).acquire()),
  )
  await clock.advance(10_000)
  expect(renewals()).toBe(10)
  await clock.advance(100)
  expect(renewals()).toBe(20)
  await clock.advance(100)
  expect(renewals()).toBe(30)
  await clock.advance(9_800)
  expect(renewals()).toBeLessThanOrEqual(40)
  await clock.advance(100_000)
  expect(leases.every(({ held }) => held)).toBe(true)
})
