/** Takes two permits and keeps them. Arguments: the port, and the name. */
import { Redis } from 'ioredis'
import { Holdfast } from '../../../src/index.js'

const [port, name = ''] = process.argv.slice(2)
const holdfast = new Holdfast(new Redis({ port: Number(port) }))
await holdfast.semaphore(name, { permits: 2 }).acquire(2)
console.log('taken')
