import { Redis } from 'ioredis5'
import { describeIoredis } from './ioredis.suite.js'
import { describeMessages } from './messages.suite.js'
import { describeReadiness } from './readiness.suite.js'
import { describeRefusals } from './refusals.suite.js'
import { describeScripts } from './scripts.suite.js'
import { IOREDIS_5 } from './variants.js'

describeScripts(IOREDIS_5)
describeRefusals(IOREDIS_5)
describeReadiness(IOREDIS_5)
describeMessages(IOREDIS_5)
describeIoredis('ioredis 5', Redis as unknown as Parameters<typeof describeIoredis>[1])
