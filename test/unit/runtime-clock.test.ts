/** The clock that users' tests drive. */
import { expect, it } from 'vitest'
import { Holdfast, ManualClock } from '../../src/index.js'

it('never goes back, even when advances overlap or a timer blocks', async () => {
  const clock = new ManualClock()
  await Promise.all([clock.advance(30), clock.advance(10)])
  expect(clock.now()).toBeGreaterThanOrEqual(30)
  const before = clock.now()
  clock.setTimer(() => {
    clock.block(50)
  }, 5)
  await clock.advance(10)
  expect(clock.now()).toBe(before + 55)
})

it.each([-1, Number.NaN, Infinity, '5' as unknown as number])('refuses to move by %s', async (ms) => {
  const clock = new ManualClock()
  await expect(clock.advance(ms)).rejects.toThrow(/ms/)
  expect(() => {
    clock.block(ms)
  }).toThrow(/ms/)
  expect(() => {
    clock.sleepMachine(ms)
  }).toThrow(/ms/)
  expect([clock.now(), clock.uptime()]).toEqual([0, 0])
})

it('a shared memory store cannot be had with a second clock', async () => {
  const clock = new ManualClock()
  const first = await Holdfast.connect('memory:clocks', { clock })
  const second = await Holdfast.connect('memory:clocks', { clock })
  await first.lock('x').acquire()
  expect(await second.lock('x').isLocked()).toBe(true)
  await expect(Holdfast.connect('memory:clocks', { clock: new ManualClock() })).rejects.toThrow(/clock/)
  await expect(Holdfast.connect('memory:clocks')).rejects.toThrow(/clock/)
})

it('a machine that sleeps holds nothing until the server confirms', async () => {
  const clock = new ManualClock()
  const holdfast = await Holdfast.connect('memory:', { clock })
  const lease = await holdfast.lock('x').acquire()
  clock.sleepMachine(5_000)
  expect(lease.held).toBe(false)
  expect(lease.signal.aborted).toBe(false)
  await clock.advance(1)
  expect(lease.held).toBe(true)
})
