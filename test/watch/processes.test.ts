/** Watching in processes of their own. */
import { execFile } from 'node:child_process'
import { expect, test } from 'vitest'
import { Child } from '../faults/child.js'
import type { Scene } from '../faults/scene.js'
import { eventually } from '../support/eventually.js'
import { watchScene } from './watcher.js'

const member = (scene: Scene, name: string, pace: 'slow' | 'quick'): Child =>
  new Child('../../watch/member.program', [String(scene.port), name, pace])

test.each(['', 'KEA'] as const)('two processes under one lock handle a change once (%j)', async (flags) => {
  await using scene = await watchScene(flags)
  await scene.command('SET', 'config', '0')
  await using first = member(scene, 'first', 'quick')
  await eventually(() => first.lines.length > 0, 'the first one leads')
  await using second = member(scene, 'second', 'quick')
  await second.printed('second: waiting')
  for (let i = 1; i <= 5; i++) {
    await scene.command('SET', 'config', i)
    await eventually(() => first.lines.length === 1 + 2 * i, `change ${i} is handled`)
  }
  expect(second.lines).toEqual(['second: waiting'])
})

test('when the leader dies while it handles a change, the next one handles it again', async () => {
  await using scene = await watchScene('KEA')
  await scene.command('SET', 'config', '0')
  await using first = member(scene, 'first', 'slow')
  await first.printed('first: notifications')
  await using second = member(scene, 'second', 'quick')
  await using third = member(scene, 'third', 'quick')
  await Promise.all([second.printed('second: waiting'), third.printed('third: waiting')])
  await scene.command('SET', 'config', '1')
  await first.printed('first begins')
  first.kill('SIGKILL')
  await eventually(
    () => [...second.lines, ...third.lines].some((line) => line.endsWith('ends')),
    'it is handled',
  )
  await scene.command('SET', 'config', '2')
  await eventually(
    () => [...second.lines, ...third.lines].filter((line) => line.endsWith('ends')).length === 2,
    'the next change is handled, too',
  )
  // All by one of the two.
  expect([second.lines.length, third.lines.length].sort()).toEqual([1, 5])
  expect(first.lines).toEqual(['first: notifications', 'first begins'])
})

/** What a program prints and how it ends; it says `alive` if something keeps it until then. */
function run(body: string): Promise<string> {
  const library = JSON.stringify(new URL('../../src/index.ts', import.meta.url).href)
  const program = `
    import { Holdfast } from ${library}
    setTimeout(() => { console.log('alive'); process.exit(0) }, 1_000).unref()
    const holdfast = await Holdfast.connect('memory:')
    ${body}
  `
  const args = ['--unhandled-rejections=strict', '--import', 'tsx', '--input-type=module', '--eval', program]
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { timeout: 20_000 }, (error, stdout, stderr) => {
      if (error === null || error.code === 13) resolve(stdout.trim())
      else reject(new Error(`${error.message}\n${stderr}`))
    })
  })
}

test.each([
  ['a watch with callbacks', `holdfast.watch('a', { onChange() {} })`, 'alive'],
  ['one that takes them later', `holdfast.watch('a', { interval: 100_000 }).on('change', () => {})`, 'alive'],
  ['one that is not to', `holdfast.watch('a', { onChange() {}, keepAlive: false })`, ''],
  ['one without any', `const watch = holdfast.watch('a'); await watch.ready`, ''],
  [
    'one that has ended',
    `const watch = holdfast.watch('a', { onChange() {} }); await watch.ready; await watch.close()`,
    '',
  ],
  [
    'one whose callbacks were taken away',
    `const f = () => {}; const watch = holdfast.watch('a', { onChange: f }); await watch.ready; watch.off('change', f)`,
    '',
  ],
  [
    'an iteration that waits',
    `for await (const change of holdfast.watch('a', { keepAlive: false }));`,
    'alive',
  ],
  ['one whose Holdfast is closed', `holdfast.watch('a', { onChange() {} }); await holdfast.close()`, ''],
])('whether the process is kept alive: %s', async (_what, body, printed) => {
  expect(await run(body)).toBe(printed)
})
