import { Redis } from 'ioredis'
import { createClient, createClientPool, createCluster, createSentinel } from 'redis'
import { describe, expect, it } from 'vitest'
import { createPort, subscriberFrom } from '../../src/engine/redis/clients/detect.js'

const NO_EVENTS = { onMessage: () => undefined, onResync: () => undefined, onDown: () => undefined }

describe('recognising a client', () => {
  const lazy = { lazyConnect: true }
  it.each([
    ['ioredis', new Redis(lazy)],
    ['ioredis', new Redis.Cluster([{ port: 1 }], lazy)],
    ['node-redis', createClient()],
    ['node-redis', createClientPool()],
    ['node-redis', createCluster({ rootNodes: [] })],
    ['node-redis', createSentinel({ name: 'main', sentinelRootNodes: [{ host: 'a', port: 1 }] })],
  ])('takes a client of %s', (name, client) => {
    const port = createPort(client)
    expect(port.client).toBe(name)
    expect(port.readiness).toBe(name === 'ioredis' ? 'waiting' : 'closed')
    expect(port.cluster).toBe(client instanceof Redis.Cluster || 'masters' in client)
  })

  it('takes a view of a client of node-redis with other options', () => {
    expect(createPort(createClient().withTypeMapping({})).client).toBe('node-redis')
  })

  it('knows the key prefix that node-redis 6 puts before its own commands only', () => {
    expect(createPort(createClient({ keyPrefix: 'p:' })).keyPrefix).toBe('p:')
    expect(createPort(createClientPool({ keyPrefix: 'p:' })).keyPrefix).toBe('p:')
    expect(createPort(createCluster({ rootNodes: [], keyPrefix: 'p:' })).keyPrefix).toBe('p:')
  })

  it('knows the key prefix of a cluster of ioredis, wherever it is set', () => {
    expect(createPort(new Redis.Cluster([{ port: 1 }], { ...lazy, keyPrefix: 'p:' })).keyPrefix).toBe('p:')
    const redisOptions = { keyPrefix: 'p:' }
    expect(createPort(new Redis.Cluster([{ port: 1 }], { ...lazy, redisOptions })).keyPrefix).toBe('p:')
  })

  it.each([
    [undefined, /got a value of type undefined/],
    [null, /got null/],
    [7, /got a value of type number/],
    ['redis://localhost', /got a string.*Holdfast\.connect/],
    [Promise.resolve(), /got a promise: await it/],
    [Redis, /got a function or class: give an instance/],
    [{}, /got a plain object/],
    [Object.create(null), /got a plain object/],
    [{ status: 'ready', options: {}, evalsha: true }, /got a plain object/],
    [[], /got an object of class Array/],
    [new Redis(lazy).pipeline(), /got an object of class/],
    [createClient().multi(), /got an object of class/],
  ])('refuses %s', (value, message) => {
    expect(() => createPort(value)).toThrow(TypeError)
    expect(() => createPort(value)).toThrow(message)
    expect(() => createPort(value)).toThrow(/Expected a client of ioredis 5 or 6, or of node-redis/)
    expect(() => subscriberFrom(value, NO_EVENTS)).toThrow(TypeError)
  })

  it('refuses a cluster of node-redis as subscriber', () => {
    expect(() => subscriberFrom(createCluster({ rootNodes: [] }), NO_EVENTS)).toThrow(/as subscriber/)
  })
})
