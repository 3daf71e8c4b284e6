/** The client and Node around it, group K: what becomes of the process. */
import { expect, test } from 'vitest'
import { Child } from './child.js'
import { openScene } from './scene.js'

test.each(['ioredis', 'node-redis'])(
  'fault 109: a process with locks and a closed client of %s ends by itself',
  async (library) => {
    await using scene = await openScene()
    await scene.command('HSET', 'taken before', '0a1b2c3d-0001-4000-8000-00000000e15e:7', 1)
    await using child = new Child('leaves-lock', [library, String(scene.port)])
    expect(await child.ended, child.errors).toEqual({ code: 0, signal: null })
    expect(child.lines).toEqual(['holds and has waited'])
    expect(child.errors).toBe('')
    // It did not end by freeing them.
    expect(await scene.command('EXISTS', 'with a watchdog', 'with a lease time')).toBe(2)
  },
)

test('fault 114: a process lives through the death of its server', async () => {
  await using scene = await openScene()
  await scene.command('HSET', 'taken before', '0a1b2c3d-0001-4000-8000-00000000e15e:7', 1)
  await using child = new Child('loses-server', [String(scene.port)], ['--unhandled-rejections=strict'])
  await child.printed('served')
  await scene.server.kill()
  await child.printed('lost')
  await child.printed('HOLDFAST_UNAVAILABLE')
  await scene.server.start()
  await child.printed('got what was taken before')
  const away = child.lines.indexOf('HOLDFAST_UNAVAILABLE')
  await expect.poll(() => child.lines.lastIndexOf('served'), { timeout: 15_000 }).toBeGreaterThan(away)
  child.kill('SIGTERM')
  expect(await child.ended, child.errors).toEqual({ code: null, signal: 'SIGTERM' })
  expect(child.errors).toBe('')
})
