import { expect, test } from 'vitest'
import { ManualClock } from '../../src/clock.js'
import { Interrupt } from '../../src/lease/interrupt.js'
import { Turnstile } from '../../src/lease/turnstile.js'

const make = () => {
  const clock = new ManualClock()
  const turnstile = new Turnstile(true)
  const order: string[] = []
  const enter = (name: string, waitMs = Infinity) => {
    const interrupt = new Interrupt()
    const turn = turnstile.enter({ clock, waitMs, interrupt })
    void turn.then((outcome) => order.push(`${name} ${outcome}`))
    return interrupt
  }
  return { clock, turnstile, order, enter }
}

test('lets one in at a time, in the order of their coming', async () => {
  const { clock, turnstile, order, enter } = make()
  expect(turnstile.tryEnter()).toBe(true)
  expect(turnstile.tryEnter()).toBe(false)
  enter('a')
  enter('b')
  await clock.advance(1_000)
  expect(order).toEqual([])
  turnstile.leave()
  await clock.advance(0)
  expect(order).toEqual(['a entered'])
  expect(turnstile.tryEnter()).toBe(false)
  turnstile.leave()
  turnstile.leave()
  await clock.advance(0)
  expect(order).toEqual(['a entered', 'b entered'])
  expect(turnstile.tryEnter()).toBe(true)
})

test('those who go do not take a turn with them', async () => {
  const { clock, turnstile, order, enter } = make()
  enter('inside')
  enter('late', 50)
  const gone = enter('gone')
  enter('next')
  await clock.advance(60)
  gone.fire('reason')
  turnstile.leave()
  await clock.advance(0)
  expect(order).toEqual(['inside entered', 'late timeout', 'gone interrupted', 'next entered'])
  expect(clock.pendingTimers).toBe(0)
})

test('an interrupt that was there before is told at once', async () => {
  const { clock, turnstile } = make()
  turnstile.tryEnter()
  const interrupt = new Interrupt()
  interrupt.fire('reason')
  expect(await turnstile.enter({ clock, waitMs: 1_000, interrupt })).toBe('interrupted')
  expect(clock.pendingTimers).toBe(0)
})

test('a closed one sends everybody away', async () => {
  const { clock, turnstile, order, enter } = make()
  turnstile.tryEnter()
  enter('a')
  enter('b', 1_000)
  turnstile.close()
  await clock.advance(0)
  expect(order).toEqual(['a closed', 'b closed'])
  turnstile.leave()
  enter('c')
  await clock.advance(0)
  expect(order.at(-1)).toBe('c closed')
  expect(turnstile.tryEnter()).toBe(false)
  expect(clock.pendingTimers).toBe(0)
  expect(new Turnstile(false).tryEnter()).toBe(false)
})
