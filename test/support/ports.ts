/** Free ports on this machine. */
import { createServer } from 'node:net'

// Below the range from which the system takes ports for outgoing connections: a server that restarts on its
// port must not find it taken by somebody's connection, and a client that reconnects must not meet itself.
const LOWEST = 12_000
const HIGHEST = 31_999

const given = new Set<number>()

/** A port that nobody listens on and that was not given out by this process before. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST + 1))
    if (given.has(port) || !(await canListen(port))) continue
    given.add(port)
    return port
  }
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => {
      resolve(false)
    })
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      probe.close(() => {
        resolve(true)
      })
    })
  })
}
