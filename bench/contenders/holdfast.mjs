// Ours: acquire and release with the watchdog on.
export function holdfastLock(holdfast, kind) {
  return {
    async prepare() {},
    async pair(name) {
      const lease = await holdfast[kind](name).acquire()
      const outcome = await lease.release()
      if (outcome !== 'released') throw new Error(`${name}: ${outcome}`)
    },
  }
}
