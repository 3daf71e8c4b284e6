import { describeMessages } from './messages.suite.js'
import { describeReadiness } from './readiness.suite.js'
import { describeRefusals } from './refusals.suite.js'
import { describeScripts } from './scripts.suite.js'
import { NODE_REDIS_6 } from './variants.js'

describeScripts(NODE_REDIS_6)
describeRefusals(NODE_REDIS_6)
describeReadiness(NODE_REDIS_6)
describeMessages(NODE_REDIS_6)
