import type { Passage } from '../../engine.js'
import type { Handlers, SpinOperation } from '../../operations.js'
import { lockTombstone } from '../names.js'
import * as scripts from '../scripts.js'
import type { Wire } from './wire.js'

/** The spin lock's operations as scripts. */
export const spinCommands: Handlers<SpinOperation, [Wire, Passage], true> = {
  'spin.release': ({ name, owner, keepMs, entombMs }, wire, passage) => {
    const keys = { lock: name, tombstone: lockTombstone(name, owner) }
    return wire.send(scripts.spinRelease, { ...keys, owner, keepMs, entombMs }, passage)
  },
  'spin.force': ({ name, owners }, wire, passage) =>
    wire.send(scripts.spinForce, { lock: name, owners }, passage),
}
