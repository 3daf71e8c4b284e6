/** What the coordinator tells a worker at its start, and what the two say to each other later. */
import type { Thing } from './things.js'

export type ClientName = 'ioredis' | 'node-redis'

/** How the workers behave, on the whole. */
export interface Manners {
  /** The part of the sections that hold on until the lease is lost, or for more than two renewals. */
  readonly greed: number
  /** The part of the attempts that are made once, with a long lease time. */
  readonly haste: number
  /** The part of the other attempts that are made with a lease time, so without a watchdog. */
  readonly leased: number
  /** The longest pause between two attempts. */
  readonly restMs: number
}

/** Everything that a worker needs to know. */
export interface Task {
  readonly process: string
  /** The file to load Holdfast from. */
  readonly source: string
  readonly folder: string
  /** The way to the server that faults are made on. */
  readonly port: number
  /** The server itself, for the resource behind the locks. */
  readonly storePort: number
  /** Of the further members of red locks. */
  readonly otherPorts: readonly number[]
  readonly client: ClientName
  readonly seed: string
  readonly things: readonly Thing[]
  /** How many callers want each thing. */
  readonly lanes: number
  readonly watchdogMs: number
  readonly commandTimeoutMs: number
  /** How long a fair lock keeps the place of a waiter that does not say how long it waits. */
  readonly placeMs: number
  readonly manners: Manners
}

/** To a worker. */
export type Order = { readonly do: 'block'; readonly ms: number } | { readonly do: 'finish' }

/** From a worker. */
export type Report = { readonly report: 'ready' } | { readonly report: 'client'; readonly id: string }
