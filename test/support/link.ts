/** A bare connection to a server: no client library, no retries. For set-up and for looking at the server's state. */
import { connect, type Socket } from 'node:net'
import { encode, Splitter, type Value } from './resp.js'

interface Pending {
  resolve(value: Value): void
  reject(error: Error): void
}

/** Sends commands in order over one socket. An error reply rejects. */
export class Link implements AsyncDisposable {
  readonly #socket: Socket
  readonly #splitter = new Splitter()
  readonly #pending: Pending[] = []

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => {
      this.#receive(chunk)
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      for (const call of this.#pending.splice(0)) call.reject(new Error('the link was closed'))
    })
  }

  /** Opens a connection to a server on this machine. */
  static open(port: number): Promise<Link> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port, noDelay: true })
      socket.once('error', reject)
      socket.once('connect', () => {
        socket.off('error', reject)
        resolve(new Link(socket))
      })
    })
  }

  send(...command: readonly (string | number)[]): Promise<Value> {
    return this.sendBytes(encode(command.map(String)))
  }

  /** Sends one command that is encoded already. */
  sendBytes(bytes: Buffer): Promise<Value> {
    if (this.#socket.destroyed) return Promise.reject(new Error('the link was closed'))
    return new Promise((resolve, reject) => {
      this.#pending.push({ resolve, reject })
      this.#socket.write(bytes)
    })
  }

  close(): void {
    this.#socket.destroy()
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.close()
    return Promise.resolve()
  }

  #receive(chunk: Buffer): void {
    for (const { value } of this.#splitter.push(chunk)) {
      const call = this.#pending.shift()
      if (value instanceof Error) call?.reject(value)
      else call?.resolve(value)
    }
  }
}
