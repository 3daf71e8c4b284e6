import { createHash } from 'node:crypto'
import type { ClientPort, Script, ScriptCall } from '../../src/engine/redis/clients/port.js'

/** A script broken on purpose: in the text of one script some words are replaced. */
export interface Change {
  readonly script: string
  readonly from: string
  readonly to: string
}

/** The same port, but for the change. */
export function changed(port: ClientPort, change: Change | undefined): ClientPort {
  if (change === undefined) return port
  const altered = (call: ScriptCall): ScriptCall =>
    call.script.name === change.script ? { ...call, script: rewritten(call.script, change) } : call
  return {
    client: port.client,
    cluster: port.cluster,
    keyPrefix: port.keyPrefix,
    database: port.database,
    get readiness() {
      return port.readiness
    },
    onceReady: (listener) => port.onceReady(listener),
    run: (call, passage) => port.run(altered(call), passage),
    runAndWait: (call, passage, demand) => port.runAndWait(altered(call), passage, demand),
    placeOf: (key) => port.placeOf(key),
    ask: (command, key) => port.ask(command, key),
    subscriber: (events, sharded) => port.subscriber(events, sharded),
    close: () => port.close(),
  }
}

/** @throws if the words are not there: then nothing would be broken, and nothing proved */
function rewritten({ name, source }: Script, { from, to }: Change): Script {
  if (source.split(from).length !== 2) throw new Error(`${name} has not once: ${from}`)
  const text = source.replace(from, () => to)
  return { name, source: text, sha: createHash('sha1').update(text).digest('hex') }
}
