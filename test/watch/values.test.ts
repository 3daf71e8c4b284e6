/** Large values and streams, as a watch tells of them. */
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.js'
import { HOUR, watching, watchScene } from './watcher.js'

const BIG = 'x'.repeat(10_000)

test('with notifications each write of a large value is told, whatever was written', async () => {
  await using scene = await watchScene('KEA')
  await scene.command('SET', 'a', BIG)
  const diagnoses = scene.hear('holdfast:diagnosis')
  const told = await watching(scene, scene.holdfast(), { keys: ['a', 'b'], interval: HOUR, exactUpTo: 5_000 })
  expect(diagnoses.map(({ kind }) => kind)).toEqual(['watch-sampled'])
  await scene.command('SETRANGE', 'a', 5_000, 'y')
  await told.until('change a')
  expect(told.changes[0]).toMatchObject({ sampled: true, type: 'string' })
  await scene.command('PEXPIRE', 'a', 100_000)
  await scene.command('SET', 'b', 'x')
  await told.until('change a', 'create b')
})

test('by polling only what the sample shows; with a higher limit all of it', async () => {
  await using scene = await watchScene('')
  await scene.command('SET', 'a', BIG)
  const holdfast = scene.holdfast()
  const rough = await watching(scene, holdfast, { keys: 'a', interval: 20, exactUpTo: 5_000 })
  const exact = await watching(scene, holdfast, { keys: 'a', interval: 20 })
  await scene.command('SETRANGE', 'a', 5_000, 'y')
  await exact.until('change a')
  await scene.command('APPEND', 'a', 'z')
  await exact.until('change a', 'change a')
  await rough.until('change a')
  expect(exact.changes.map(({ sampled }) => sampled)).toEqual([false, false])
})

test.each(['', 'KEA'] as const)('the entries of a stream are told (%j)', async (flags) => {
  await using scene = await watchScene(flags)
  const told = await watching(scene, scene.holdfast(), { keys: 'a', interval: 20 })
  await scene.command('XADD', 'a', '*', 'k', 'v')
  await told.until('create a')
  await scene.command('XADD', 'a', '*', 'k', 'v')
  await told.until('create a', 'change a')
  expect(told.changes[1]).toMatchObject({ type: 'stream', sampled: true })
})

test('many large values are looked at in pieces', async () => {
  await using scene = await watchScene('')
  const keys = Array.from({ length: 40 }, (_, i) => `k${i}`)
  for (const key of keys) await scene.command('SET', key, key + BIG + BIG)
  await scene.forgetCalls()
  const told = await watching(scene, scene.holdfast(), { keys, interval: HOUR })
  expect(await scene.scripts()).toBeGreaterThanOrEqual(4)
  for (const key of keys) await scene.command('APPEND', key, '!')
  told.watch.interval = 50
  await eventually(() => told.lines.length === 40, 'all are told')
  expect(told.lines.sort()).toEqual(keys.map((key) => `change ${key}`).sort())
})
