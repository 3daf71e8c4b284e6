/** The number of permits, as scripts set and change it: keys, TTLs, messages, to the largest numbers. */
import { describe, expect, test } from 'vitest'
import { text } from '../peer/snapshot.js'
import {
  onPermitServer,
  A,
  B,
  C,
  D,
  MARK,
  MOST,
  N,
  T,
  acquire,
  addPermits,
  count,
  give,
  link,
  recorder,
  release,
  seed,
  set,
  told,
  trySet,
} from './permits-stage.js'

onPermitServer()

describe('permits/try-set, set and add', () => {
  const marked = (note = 'set') => ({ [MARK]: text(note, 60_000) })

  test('try-set: set once, told once, and the repeated call answers like the first', async () => {
    const first = await trySet(5)
    expect(first).toEqual({
      reply: { outcome: 'set' },
      keys: { [N]: text(5, 'none'), ...marked() },
      messages: told(5),
    })
    expect(await trySet(5)).toEqual({ ...first, messages: [] })
    await link.command('DEL', MARK)
    expect(await trySet(7)).toEqual({
      reply: { outcome: 'exists' },
      keys: { [N]: text(5, 'none'), ...marked('exists') },
      messages: [],
    })
  })

  test('set: the total is what is asked for, whatever is out', async () => {
    expect(await set(5)).toMatchObject({ keys: { [N]: text(5, 'none') }, messages: told(5) })
    await recorder.clear()
    await seed(1, { [A]: T, [B]: 1_000 })
    expect(await set(3)).toMatchObject({ keys: { [N]: text(1, 'none') }, messages: [] })
    await link.command('DEL', MARK)
    expect(await set(1)).toMatchObject({
      reply: { outcome: 'set' },
      keys: { [N]: text(-1, 'none'), ...marked() },
      messages: told(1),
    })
    // A late copy does not undo what came after it.
    await link.command('SET', N, 8)
    expect(await set(1)).toMatchObject({ keys: { [N]: text(8, 'none') }, messages: [] })
  })

  test('set: what changes nothing leaves a note all the same, for its late copies', async () => {
    await seed(5)
    expect(await set(5)).toEqual({
      reply: { outcome: 'set' },
      keys: { [N]: text(5, 'none'), ...marked() },
      messages: [],
    })
    await link.command('SET', N, 2)
    expect((await set(5)).keys[N]).toEqual(text(2, 'none'))
  })

  test('try-set: what was refused is refused later, too', async () => {
    await seed(5)
    expect((await trySet(3)).keys).toEqual({ [N]: text(5, 'none'), ...marked('exists') })
    await link.command('DEL', N)
    expect(await trySet(3)).toEqual({ reply: { outcome: 'exists' }, keys: marked('exists'), messages: [] })
  })

  test.each([
    ['what is available', MOST, 0, 1],
    ['what is out and comes back', MOST - 1, 1, 1],
    ['what is below zero', 1 - MOST, 0, -2],
  ])('add: overflow by %s changes nothing, then or later', async (_what, available, out, change) => {
    await seed(available, Object.fromEntries([A, B].slice(0, out).map((id) => [id, T])))
    expect(await addPermits(change)).toMatchObject({
      reply: { outcome: 'overflow' },
      keys: { [N]: text(available, 'none'), ...marked('overflow') },
      messages: [],
    })
    await link.command('SET', N, 0)
    expect(await addPermits(change)).toMatchObject({
      reply: { outcome: 'overflow' },
      keys: { [N]: text(0, 'none') },
    })
  })

  test('the largest numbers are counted exactly, to the last one', async () => {
    await trySet(MOST)
    expect((await acquire([A, B])).reply).toMatchObject({ left: String(MOST - 2) })
    expect((await count()).reply).toMatchObject({ available: String(MOST - 2) })
    await link.command('DEL', MARK)
    expect((await set(MOST - 1)).keys[N]).toEqual(text(MOST - 3, 'none'))
    await release([A, B])
    expect((await count()).reply).toMatchObject({ available: String(MOST - 1) })
    await recorder.clear()
    await seed(-MOST)
    expect((await set(MOST)).keys[N]).toEqual(text(MOST, 'none'))
  })

  test('a number that another program has set too high takes no permits along', async () => {
    await seed(MOST, { [A]: T, [B]: T, [C]: 1_000 })
    expect((await release([A])).keys[N]).toEqual(text(MOST, 'none'))
    expect((await give([B], { nowMs: 0 })).keys[N]).toEqual(text(MOST, 'none'))
    expect((await count()).reply).toMatchObject({ available: String(MOST), acquired: 0 })
    expect((await acquire([D])).reply).toEqual({ outcome: 'granted', left: String(MOST - 1), ttlMs: 0 })
  })

  test('the TTL of the number stays with each change', async () => {
    await seed(1)
    await link.command('PEXPIRE', N, 60_000)
    const before = await link.command('PEXPIRETIME', N)
    await set(4)
    await link.command('DEL', MARK)
    expect((await addPermits(2)).keys[N]).toMatchObject({ value: '6' })
    expect(await link.command('PEXPIRETIME', N)).toBe(before)
  })

  test('add: more is told, less is not, and a repeated call changes nothing', async () => {
    await seed(1, { [A]: T })
    const first = await addPermits(4)
    expect(first).toMatchObject({
      reply: { outcome: 'set' },
      keys: { [N]: text(5, 'none'), ...marked() },
      messages: told(4),
    })
    expect(await addPermits(4)).toEqual({ ...first, messages: [] })
    await link.command('DEL', MARK)
    expect(await addPermits(-7)).toMatchObject({ keys: { [N]: text(-2, 'none') }, messages: [] })
  })

  test.each([
    [-1, 4],
    [10, 14],
  ])('add to a number that is missing begins with what the caller knows (%i)', async (total, sum) => {
    expect((await addPermits(4, total)).keys).toMatchObject({ [N]: text(sum, 'none') })
  })
})
