import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { PortError, type SubscriberEvents, type SubscriberPort } from '../../src/engine/redis/clients/port.js'
import { ShardedSubscriber, type ShardSource } from '../../src/engine/redis/clients/sharded-subscriber.js'
import { eventually } from '../support/eventually.js'

/** What the nodes of a cluster hear, and where its slots are; connections are made up. */
class Shards implements ShardSource {
  readonly slots = new Map<string, string>()
  readonly heard = new Map<string, Set<string>>()
  readonly links = new Map<string, SubscriberEvents>()
  readonly refused = new Set<string>()
  refreshes = 0

  addressOf(channel: string): string {
    return this.slots.get(channel) ?? 'a'
  }

  refresh(): void {
    this.refreshes += 1
  }

  open(address: string, events: SubscriberEvents): SubscriberPort {
    const channels = new Set<string>()
    this.heard.set(address, channels)
    this.links.set(address, events)
    return {
      subscribe: (channel) => {
        if (this.refused.has(channel))
          return Promise.reject(new PortError('MOVED', { kind: 'refused', outcome: 'not-applied' }))
        channels.add(channel)
        return Promise.resolve()
      },
      unsubscribe: (channel) => {
        channels.delete(channel)
        return Promise.resolve()
      },
      close: () => {
        this.heard.delete(address)
        return Promise.resolve()
      },
    }
  }
}

const shards = new Shards()
const news: string[] = []
const subscriber = (): ShardedSubscriber =>
  new ShardedSubscriber(shards, {
    onMessage: (channel, payload) => news.push(`${channel}: ${payload}`),
    onDown: (_cause, channels) => news.push(`down ${String(channels)}`),
    onResync: (channels) => news.push(`resync ${String(channels)}`),
  })

afterEach(() => {
  shards.slots.clear()
  shards.heard.clear()
  news.length = 0
})

describe('a sharded subscriber', () => {
  test('hears each channel where its slot is', async () => {
    shards.slots.set('x', 'a').set('y', 'b')
    const own = subscriber()
    await Promise.all([own.subscribe('x'), own.subscribe('y')])
    shards.links.get('b')?.onMessage('y', '0')
    expect([shards.heard.get('a'), shards.heard.get('b')]).toEqual([new Set(['x']), new Set(['y'])])
    expect(news).toEqual(['y: 0'])
    await own.close()
  })

  test('follows a primary that was replaced, also while others come and go all the time', async () => {
    shards.slots.set('x', 'a')
    const own = subscriber()
    await own.subscribe('x')
    shards.links.get('a')?.onDown(new Error('gone'))
    shards.slots.set('x', 'b')
    const stop = new AbortController()
    const coming = (async () => {
      for (let i = 0; !stop.signal.aborted; i++) {
        await own.subscribe(`other ${String(i % 3)}`)
        await sleep(20)
      }
    })()
    await eventually(() => shards.heard.get('b')?.has('x') === true, 'it is heard at the new place')
    stop.abort()
    await coming
    expect(news).toEqual(['down x', 'resync x'])
    expect(shards.refreshes).toBeGreaterThan(0)
    await own.close()
  })

  test('tells those whose link is down, and no others', async () => {
    shards.slots.set('x', 'a').set('y', 'b')
    const own = subscriber()
    await Promise.all([own.subscribe('x'), own.subscribe('y')])
    shards.links.get('a')?.onDown(new Error('cut'))
    shards.links.get('a')?.onResync()
    expect(news).toEqual(['down x', 'resync x'])
    await own.close()
  })

  test('leaves what a node refuses to whoever asks again', async () => {
    const own = subscriber()
    shards.refused.add('x')
    await expect(own.subscribe('x')).rejects.toThrow('MOVED')
    expect(shards.refreshes).toBeGreaterThan(0)
    shards.refused.clear()
    shards.slots.set('x', 'b')
    await own.subscribe('x')
    expect(shards.heard.get('b')).toEqual(new Set(['x']))
    await own.close()
  })
})
