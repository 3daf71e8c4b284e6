import type { Engine, Hint, Subscription, Topic } from '../engine/engine.js'
import type { Red } from './red.js'
import { kindOf } from './target.js'

/**
 * Listens on all members at once. A holder that ends is told of by a majority; what only a minority tells is the
 * giving back of an attempt that failed, and would only set off the next one.
 */
export function quorumTopic(red: Red): Pick<Engine, 'subscribe'> {
  return { subscribe: (_topic: Topic, listener: (hint: Hint) => void) => listenToAll(red, listener) }
}

function listenToAll(red: Red, listener: (hint: Hint) => void): Subscription {
  const told = new Set<number>()
  const up = new Set<number>()
  const hear = (place: number, hint: Hint): void => {
    if (hint === 'down') {
      told.delete(place)
      if (up.delete(place) && up.size === red.quorum - 1) listener('down')
      return
    }
    if (hint === 'resync') up.add(place)
    told.add(place)
    if (told.size < red.quorum) return
    told.clear()
    listener(hint === 'resync' ? 'resync' : 'one')
  }
  const subscriptions = red.members.flatMap(({ runtime, target }, place) => {
    const topic = kindOf(target).topic(target)
    if (topic === undefined) return []
    return [
      runtime.commands.engine.subscribe(topic, (hint) => {
        hear(place, hint)
      }),
    ]
  })
  return {
    live: majorityLive(red, subscriptions, up),
    close: () => {
      for (const subscription of subscriptions) subscription.close()
    },
  }
}

function majorityLive(red: Red, subscriptions: readonly Subscription[], up: Set<number>): Promise<boolean> {
  return new Promise((resolve) => {
    let down = 0
    subscriptions.forEach(({ live }, place) => {
      void live.then((isLive) => {
        if (isLive) up.add(place)
        else down += 1
        if (up.size >= red.quorum) resolve(true)
        else if (down > red.members.length - red.quorum) resolve(false)
      })
    })
  })
}
