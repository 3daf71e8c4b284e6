import { expect, test } from 'vitest'
import { latchChannel, semaphoreChannel, unsafeInCluster } from '../../src/engine/redis/names.js'
import { slotOf } from '../../src/engine/redis/clients/slot.js'

test('a latch whose channel would be in another slot of a cluster than its key is refused there', () => {
  for (const name of ['n', 'orders:42', '{a}b', 'a{b}c{d}']) {
    const same = slotOf(latchChannel(name)) === slotOf(name)
    expect(unsafeInCluster(name, 'latch') === undefined, name).toBe(same)
    // Other objects may have such names.
    expect(slotOf(semaphoreChannel(name))).toBe(slotOf(name))
    expect(unsafeInCluster(name)).toBeUndefined()
  }
})
