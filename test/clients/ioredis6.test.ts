import { Redis } from 'ioredis'
import { describeIoredis } from './ioredis.suite.js'
import { describeMessages } from './messages.suite.js'
import { describeReadiness } from './readiness.suite.js'
import { describeRefusals } from './refusals.suite.js'
import { describeScripts } from './scripts.suite.js'
import { IOREDIS_6 } from './variants.js'

describeScripts(IOREDIS_6)
describeRefusals(IOREDIS_6)
describeReadiness(IOREDIS_6)
describeMessages(IOREDIS_6)
describeIoredis('ioredis 6', Redis)
