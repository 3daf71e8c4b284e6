/** A lock over three servers that a peer holds: Redisson's has another owner on each, as its clients have other ids. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openServers } from '../faults/support/servers.js'
import { watch } from '../faults/scene.js'
import { eventually } from '../support/eventually.js'

const NAME = 'n'
const CHANNEL = 'redisson_lock__channel:{n}'
const OWNERS = [
  '1c6e9b0a-0d7c-4f55-8a56-0f6c1f1f2f3f:57',
  '2d7f0c1b-1e8d-4a66-9b67-1a7d2a2a3a4a:57',
  '3e8a1d2c-2f9e-4b77-8c78-2b8e3b3b4b5b:57',
]

test('who waits for it listens, and hears its end on a majority', async () => {
  await using servers = await openServers(3)
  for (const [place, owner] of OWNERS.entries()) {
    await servers.at(place).command('HSET', NAME, owner, 1)
    await servers.at(place).command('PEXPIRE', NAME, 600_000)
  }
  const wakeups = servers.at(0).hear('holdfast:wakeup')
  const red = await servers.red(NAME)
  const acquiring = red.acquire({ pollInterval: 600_000 })
  const waiting = watch(acquiring)
  await eventually(async () => {
    const replies = await Promise.all(
      servers.scenes.map((scene) => scene.command('PUBSUB', 'NUMSUB', CHANNEL)),
    )
    return replies.every((reply) => Array.isArray(reply) && reply[1] === 1)
  }, 'it listens on each server')
  await sleep(100)
  expect(waiting.settled).toBe(false)
  wakeups.length = 0
  for (const place of [0, 1, 2]) {
    await servers.at(place).command('DEL', NAME)
    await servers.at(place).command('PUBLISH', CHANNEL, 0)
  }
  expect((await acquiring).held).toBe(true)
  expect(wakeups.map(({ cause }) => cause)).toContain('message')
})

test('three that hold one server each are no split of votes that ends by itself', async () => {
  await using servers = await openServers(3)
  const red = await servers.red(NAME)
  for (const [place, owner] of OWNERS.entries()) await servers.at(place).command('HSET', NAME, owner, 1)
  const acquiring = red.acquire()
  const waiting = watch(acquiring)
  await eventually(async () => {
    const before = await servers.at(0).scripts()
    await sleep(1_500)
    return (await servers.at(0).scripts()) === before
  }, 'it sleeps')
  expect(waiting.settled).toBe(false)
  await servers.at(1).command('DEL', NAME)
  await servers.at(2).command('DEL', NAME)
  expect((await acquiring).held).toBe(true)
})
