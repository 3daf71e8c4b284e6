import { REDISSON_VERSIONS } from '../../tools/redisson-peer.mjs'
import { interopWith } from './suites.js'

interopWith(REDISSON_VERSIONS[1])
