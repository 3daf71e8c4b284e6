/** Promises that are looked at before they settle. */

/** A promise, and whether it has settled by now. */
export interface Pending<T> {
  readonly promise: Promise<T>
  readonly settled: boolean
}

/** Watches a promise. A rejection is not lost: `promise` has it. */
export function watch<T>(promise: Promise<T>): Pending<T> {
  const state = { promise, settled: false }
  const settle = () => {
    state.settled = true
  }
  promise.then(settle, settle)
  return state
}
