import { systemClock } from '../../../clock.js'

/** The same, or an error after so long: a client waits for ever for a server that takes connections and says nothing. */
export function within<T>(limitMs: number, work: Promise<T>, keepAlive: boolean): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = (): void => {
      reject(new Error(`no answer within ${String(limitMs)} ms`))
    }
    const timer = systemClock.setTimer(late, limitMs, keepAlive)
    work
      .finally(() => {
        timer.cancel()
      })
      .then(resolve, reject)
  })
}
