// One of several processes that watch under one lock. Arguments: port, name, `slow` or `quick`.
import { Redis } from 'ioredis'
import { Holdfast } from '../../src/index.js'

const [port, name = '', pace] = process.argv.slice(2)
const holdfast = new Holdfast(new Redis(Number(port)), { lockWatchdogTimeout: 1_000 })
const watch = holdfast.watch('config', {
  under: holdfast.lock('config:handler'),
  interval: 50,
  onChange: async () => {
    console.log(`${name} begins`)
    if (pace === 'slow') await new Promise(() => undefined)
    console.log(`${name} ends`)
  },
  onError: (error) => {
    console.log(`${name} failed: ${String(error)}`)
  },
})
await watch.ready
console.log(`${name}: ${watch.mode}`)
