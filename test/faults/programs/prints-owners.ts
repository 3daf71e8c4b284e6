/** Prints the owners of a few leases, in a process whose random numbers are made equal to those of every other one. */
import { Holdfast } from '../../../src/index.js'

Math.random = () => 0.5
const holdfast = await Holdfast.connect('memory:')
for (let index = 0; index < 3; index++) {
  const lease = await holdfast.lock(`name:${index}`).acquire()
  console.log(lease.owner)
}
process.exit()
