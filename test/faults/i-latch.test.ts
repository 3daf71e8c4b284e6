/** The count-down latch, group I: who is told, and what happens in the gaps. */
import { expect, test } from 'vitest'
import * as scripts from '../../src/engine/redis/scripts.js'
import { eventually } from '../support/eventually.js'
import { openScene, watch } from './scene.js'
import { about, IDLE, untilHeard } from './support/around.js'

const NAME = 'arrivals'
const CHANNEL = `redisson_countdownlatch__channel__{${NAME}}`

test('fault 91: every waiter of every process is told', async () => {
  await using scene = await openScene()
  const holdfasts = [scene.holdfast(), scene.holdfast({}, await scene.nodeRedis())]
  const wakeups = scene.hear('holdfast:wakeup')
  await holdfasts[0]?.countDownLatch(NAME).trySetCount(2)
  const waits = holdfasts.flatMap((holdfast) =>
    Array.from({ length: 5 }, () => holdfast.countDownLatch(NAME).wait({ pollInterval: 600_000 })),
  )
  const states = waits.map(watch)
  await eventually(
    () => about(wakeups, NAME).filter(({ cause }) => cause === 'resync').length >= 2,
    'both have looked after subscribing',
  )
  await scene.holdfast().countDownLatch(NAME).countDown()
  expect(states.some(({ settled }) => settled)).toBe(false)
  await scene.holdfast().countDownLatch(NAME).countDown()
  await Promise.all(waits)
  // One subscription for all waiters of a process.
  for (const holdfast of holdfasts) expect(holdfast.stats()).toEqual(IDLE)
})

test('fault 92: zero that is reached before the subscription is confirmed is found', async () => {
  await using scene = await openScene()
  const proxy = await scene.proxy()
  const holdfast = scene.holdfast({}, scene.ioredis({ port: proxy.port }))
  const latch = holdfast.countDownLatch(NAME)
  await latch.trySetCount(1)
  const subscribing = proxy.holdRequests(/^s?subscribe/i)
  const wait = latch.wait({ pollInterval: 600_000 })
  await subscribing.caught()
  await scene.holdfast().countDownLatch(NAME).countDown()
  subscribing.release()
  await wait
  expect(holdfast.stats()).toEqual(IDLE)
})

test('fault 92: zero that is reached while the subscriber is cut off is found', async () => {
  await using scene = await openScene()
  const latch = scene.holdfast().countDownLatch(NAME)
  await latch.trySetCount(1)
  const waits = Promise.all([latch.wait(), latch.wait()])
  await untilHeard(scene, CHANNEL)
  await scene.command('CLIENT', 'KILL', 'TYPE', 'pubsub')
  await scene.holdfast().countDownLatch(NAME).countDown()
  await waits
})

test('fault 92: thousands of short rounds end, each with all its waiters', async () => {
  await using scene = await openScene()
  const [ours, theirs] = [scene.holdfast(), scene.holdfast()]
  const round = async (i: number): Promise<void> => {
    const name = `round:${i % 50}:${i}`
    const latch = ours.countDownLatch(name)
    await latch.trySetCount(2)
    const waits = [latch.wait(), theirs.countDownLatch(name).wait()]
    await Promise.all([theirs.countDownLatch(name).countDown(), latch.countDown()])
    await Promise.all(waits)
  }
  for (let i = 0; i < 3_000; i += 50) await Promise.all(Array.from({ length: 50 }, (_, j) => round(i + j)))
  for (const holdfast of [ours, theirs]) expect(holdfast.stats()).toEqual(IDLE)
})

test('fault I19: a latch that is deleted lets its waiters go, and one below zero is open', async () => {
  await using scene = await openScene()
  const latch = scene.holdfast().countDownLatch(NAME)
  await latch.trySetCount(5)
  const wait = latch.wait({ pollInterval: 600_000 })
  await untilHeard(scene, CHANNEL)
  await scene.holdfast().countDownLatch(NAME).delete()
  await wait
  await scene.command('SET', NAME, '-3')
  await latch.wait()
  expect(await latch.countDown()).toBe(0)
  expect(await scene.command('EXISTS', NAME)).toBe(0)
})

test('fault I19: a look that was begun before the latch was set anew opens nothing for later callers', async () => {
  await using scene = await openScene()
  const proxy = await scene.proxy()
  const holdfast = scene.holdfast({}, scene.ioredis({ port: proxy.port }))
  const latch = holdfast.countDownLatch(NAME)
  await scene.command('SCRIPT', 'LOAD', scripts.latchInspect.script.source)
  const answer = proxy.holdReplies(({ request }) => request?.words[1] === scripts.latchInspect.script.sha)
  const early = latch.wait()
  await answer.caught()
  await scene.holdfast().countDownLatch(NAME).trySetCount(1)
  const late = watch(latch.wait())
  answer.release()
  await early
  await untilHeard(scene, CHANNEL)
  expect(late.settled).toBe(false)
  await scene.holdfast().countDownLatch(NAME).countDown()
  await eventually(() => late.settled, 'the later caller goes through')
})
