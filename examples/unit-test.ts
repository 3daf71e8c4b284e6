// Testing code that uses locks without a server: the memory engine, with a clock that stands still until it is moved.
import assert from 'node:assert/strict'
import { Holdfast, ManualClock } from 'holdfast'

const clock = new ManualClock()
const holdfast = await Holdfast.connect('memory:', { clock })
const lock = holdfast.lock('report')

const lease = await lock.acquire({ leaseTime: 60_000 })
await clock.advance(59_000)
assert.equal(lease.held, true)
await clock.advance(1_000)
assert.equal(lease.held, false)
assert.equal(await lock.isLocked(), false)
console.log('a minute passed in no time, and the lease with it')

// With a drain, closing would wait on this clock for leases that nobody released.
await holdfast.close({ drain: 0 })
