import { EngineError, type Passage } from '../../engine.js'
import type { Handlers, ServerOperation } from '../../operations.js'
import * as scripts from '../scripts.js'
import type { Wire } from './wire.js'

/** The operations on the server as scripts. */
export const serverCommands: Handlers<ServerOperation, [Wire, Passage], true> = {
  'server.identify': async ({ name }, wire, passage) => {
    const reply = await wire.send(scripts.serverIdentify, { name }, passage)
    if (reply.outcome === 'known') return reply
    throw new EngineError('A question about the server was answered with WRONGTYPE', {
      kind: 'refused',
      outcome: 'not-applied',
    })
  },
}
