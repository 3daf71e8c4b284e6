/** The server itself. */

/** Asks which server, and which data, stand behind a name. */
export interface ServerIdentify {
  readonly op: 'server.identify'
  /** Decides which node of a cluster is asked. */
  readonly name: string
}

/** What a server answers; equal ids mean that two servers are not independent. */
export interface ServerIdentifyReply {
  /** Of this run of the server. */
  readonly runId: string
  /** Of the data: a primary and its replicas share it. */
  readonly dataId: string
}

/** The operations on the server. */
export type ServerOperation = ServerIdentify

/** Their replies. */
export interface ServerReplies {
  'server.identify': ServerIdentifyReply
}
