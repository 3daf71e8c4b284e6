// A request handler that must not let a customer wait: at most 300 ms for the lock, and no longer than the client
// stays connected. Each kind of failure gets its own answer.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Holdfast, HoldfastError } from 'holdfast'

const redis = new Redis(process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379')
const holdfast = new Holdfast(redis)

const STATUS: Readonly<Record<string, number>> = { HOLDFAST_WAIT_TIMEOUT: 409, HOLDFAST_UNAVAILABLE: 503 }

async function pay(request: IncomingMessage, response: ServerResponse): Promise<void> {
  request.resume()
  await once(request, 'end')
  const gone = new AbortController()
  // The response's event: the request's comes already when its body has been read.
  response.on('close', () => {
    if (!response.writableEnded) gone.abort()
  })
  try {
    await holdfast.lock('payment:order-42').using({ waitTime: 300, signal: gone.signal }, () => sleep(500))
    response.writeHead(200).end('paid')
  } catch (error) {
    const status = error instanceof HoldfastError ? STATUS[error.code] : undefined
    response.writeHead(status ?? 500).end(String(error))
  }
}

const server = createServer((request, response) => void pay(request, response))
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const { port } = server.address() as AddressInfo

const request = async (): Promise<number> =>
  (await fetch(`http://127.0.0.1:${String(port)}/pay`, { method: 'POST', body: 'order 42' })).status
const answers = (await Promise.all([request(), request()])).sort()
console.log(`two requests for one order at once: ${answers.join(' and ')}`)

server.close()
server.closeAllConnections()
await holdfast.close()
await redis.quit()
if (answers.join() !== '200,409') throw new Error('One payment and one refusal were expected')
