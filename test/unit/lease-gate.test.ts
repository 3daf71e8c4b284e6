import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../src/clock.js'
import { Call } from '../../src/lease/call.js'
import { Gate } from '../../src/lease/gate.js'
import { Tenure, wallOffset } from '../../src/lease/tenure.js'
import { resolveAcquireOptions, resolveHoldfastOptions } from '../../src/options.js'

function stage(longestMs = 30_000) {
  const clock = new ManualClock()
  const poked: string[] = []
  let idle = 0
  const gate = new Gate({
    clock,
    longestMs,
    poke: (side) => poked.push(side),
    onIdle: () => {
      idle += 1
    },
  })
  const call = (family: 'read' | 'write', options = {}) =>
    new Call(
      { family, name: 'n', title: 'n' },
      resolveAcquireOptions(options, resolveHoldfastOptions({ clock }), false),
      { clock, owner: 'client:1' },
    )
  const enter = (family: 'read' | 'write') => {
    const tenure = new Tenure({
      target: { family, name: 'n', title: 'n' },
      owner: 'client:1',
      once: true,
      clock,
      drift: 0,
      confirmation: { sentAtMs: clock.now(), wallOffsetMs: wallOffset(clock), ttlMs: 600_000 },
      onEnd: () => undefined,
    })
    gate.entered(family, tenure)
    return tenure
  }
  const held = async (reader: Call) => {
    let open = true
    const done = gate.admission(reader).then(() => {
      open = false
    })
    await clock.advance(0)
    return {
      done,
      get waiting() {
        return open
      },
    }
  }
  return {
    clock,
    gate,
    poked,
    call,
    enter,
    held,
    get idle() {
      return idle
    },
  }
}

describe('holding back', () => {
  test('begins when a writer has waited for 50 ms, not before', () => {
    const { clock, gate, call, enter } = stage()
    enter('read')
    expect(gate.holdsBack()).toBe(false)
    gate.writerWaits(call('write'))
    clock.block(49)
    expect(gate.holdsBack()).toBe(false)
    clock.block(1)
    expect(gate.holdsBack()).toBe(true)
  })

  test('ends when the writer is served or gives up', async () => {
    const { clock, gate, call, enter, held } = stage()
    enter('read')
    const writer = call('write')
    gate.writerWaits(writer)
    clock.block(50)
    const reader = await held(call('read'))
    expect(reader.waiting).toBe(true)
    writer.end()
    await reader.done
    expect(gate.holdsBack()).toBe(false)
  })

  test('lasts while readers of the process are inside, then a moment longer for the writer to come in', async () => {
    const { clock, gate, call, enter, held, poked } = stage()
    const inside = [enter('read'), enter('read')]
    gate.writerWaits(call('write'))
    clock.block(50)
    const reader = await held(call('read'))
    await clock.advance(5_000)
    inside[0]?.end()
    await clock.advance(5_000)
    expect([reader.waiting, poked]).toEqual([true, []])
    inside[1]?.end()
    await clock.advance(49)
    expect([reader.waiting, poked]).toEqual([true, ['write']])
    await clock.advance(1)
    await reader.done
  })

  test('is never longer than the limit, and comes later each time that it was in vain', async () => {
    const { clock, gate, call, enter, held } = stage(1_000)
    enter('read')
    gate.writerWaits(call('write'))
    for (const patienceMs of [50, 100, 200, 400]) {
      await clock.advance(patienceMs - 1)
      expect(gate.holdsBack()).toBe(false)
      await clock.advance(1)
      const reader = await held(call('read'))
      await clock.advance(999)
      expect(reader.waiting).toBe(true)
      await clock.advance(1)
      await reader.done
    }
  })

  test('ends for a call at its own deadline, its abort, and its closing', async () => {
    const { clock, gate, call, enter, held } = stage()
    enter('read')
    gate.writerWaits(call('write'))
    clock.block(50)
    const brief = await held(call('read', { waitTime: 100 }))
    const controller = new AbortController()
    const aborted = await held(call('read', { signal: controller.signal }))
    controller.abort()
    await aborted.done
    await clock.advance(99)
    expect(brief.waiting).toBe(true)
    await clock.advance(1)
    await brief.done
  })
})

describe('after a write', () => {
  test('the readers that wait go first, and the next writer waits for their answer', async () => {
    const { clock, gate, call, enter, poked } = stage()
    const writing = enter('write')
    gate.readerWaits(call('read'))
    gate.writerWaits(call('write'))
    clock.block(80)
    writing.end()
    await clock.advance(0)
    expect(poked).toEqual(['read'])
    expect(gate.holdsBack()).toBe(false)
    let yielding = true
    const done = gate.yieldToReaders(call('write')).then(() => {
      yielding = false
    })
    await clock.advance(10)
    expect(yielding).toBe(true)
    enter('read')
    await done
    expect(gate.holdsBack()).toBe(true)
  })

  test('but not for long, and only once', async () => {
    const { clock, gate, call, enter } = stage()
    enter('write').end()
    await gate.yieldToReaders(call('write'))
    const writing = enter('write')
    gate.readerWaits(call('read'))
    // While it is held there is nothing to leave to others.
    await gate.yieldToReaders(call('write'))
    writing.end()
    const done = gate.yieldToReaders(call('write'))
    await clock.advance(50)
    await done
    await gate.yieldToReaders(call('write'))
  })
})

test('a gate that nobody needs says so', () => {
  const scene = stage()
  const reading = scene.enter('read')
  const writer = scene.call('write')
  scene.gate.writerWaits(writer)
  reading.end()
  expect(scene.idle).toBe(0)
  writer.end()
  expect(scene.idle).toBe(1)
  const reader = scene.call('read')
  scene.gate.readerWaits(reader)
  scene.gate.readerGone(reader)
  expect(scene.idle).toBe(2)
})
