import { existsSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { Link } from '../support/link.js'
import { startRedis, type RedisServer } from '../support/server.js'

const servers: RedisServer[] = []

async function start(...args: Parameters<typeof startRedis>): Promise<RedisServer> {
  const server = await startRedis(...args)
  servers.push(server)
  return server
}

afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop()
})

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('a server for tests', () => {
  it('answers when it is handed over, and leaves nothing behind', async () => {
    const server = await start()
    expect(await server.send('PING')).toBe('PONG')
    const { pid, dir } = server
    await server.stop()
    expect(isAlive(pid)).toBe(false)
    expect(existsSync(dir)).toBe(false)
  })

  it('runs beside others, with the arguments it was given', async () => {
    const one = await start({ args: ['--maxmemory', '5mb'] })
    const other = await start()
    expect(one.port).not.toBe(other.port)
    expect(await one.send('CONFIG', 'GET', 'maxmemory')).toEqual(['maxmemory', '5242880'])
  })

  it('answers nobody while it is paused', async () => {
    const server = await start()
    const link = await Link.open(server.port)
    server.pause()
    const replies: unknown[] = []
    const reply = link.send('PING').then((value) => replies.push(value))
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(replies).toEqual([])
    server.resume()
    await reply
    expect(replies).toEqual(['PONG'])
    link.close()
  })

  it('comes back empty, or with its data', async () => {
    const server = await start()
    await server.send('SET', 'kept', 'yes')
    const first = server.pid
    await server.restart({ keepData: true })
    expect(server.pid).not.toBe(first)
    expect(await server.send('GET', 'kept')).toBe('yes')
    await server.restart()
    expect(await server.send('GET', 'kept')).toBeNull()
  })

  it('can be killed, and started again on its port', async () => {
    const server = await start()
    await server.kill()
    expect(server.running).toBe(false)
    await expect(server.send('PING')).rejects.toThrow('ECONNREFUSED')
    await server.start()
    expect(await server.send('PING')).toBe('PONG')
  })

  it('says why it did not start', async () => {
    await expect(startRedis({ args: ['--no-such-setting', '1'] })).rejects.toThrow(/no-such-setting/)
  })
})
