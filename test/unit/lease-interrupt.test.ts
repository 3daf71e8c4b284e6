import { expect, test } from 'vitest'
import { Interrupt } from '../../src/lease/interrupt.js'

const listening = (interrupt: Interrupt) => {
  const heard: unknown[] = []
  interrupt.listen((reason) => heard.push(reason))
  return heard
}

test('tells its listener once, the first reason only', () => {
  const interrupt = new Interrupt()
  const heard = listening(interrupt)
  expect(interrupt.fired).toBe(false)
  interrupt.fire('one')
  interrupt.fire('two')
  expect(heard).toEqual(['one'])
  expect(interrupt).toMatchObject({ fired: true, reason: 'one' })
})

test('a listener that comes too late is told at once', () => {
  const interrupt = new Interrupt()
  interrupt.fire(undefined)
  expect(listening(interrupt)).toEqual([undefined])
  expect(interrupt.fired).toBe(true)
})

test('only the last listener is told, and none that was taken away', () => {
  const interrupt = new Interrupt()
  const first = listening(interrupt)
  const second = listening(interrupt)
  interrupt.fire('reason')
  expect([first, second]).toEqual([[], ['reason']])
  const other = new Interrupt()
  const gone = listening(other)
  other.listen(undefined)
  other.fire('reason')
  expect(gone).toEqual([])
})
