/** Several independent servers for a lock over all of them. */
import type { Holdfast, HoldfastOptions, RedLock, RedLockOptions } from '../../../src/index.js'
import { eventually } from '../../support/eventually.js'
import { openScene, type Scene } from '../scene.js'

/** Opens so many scenes. */
export async function openServers(count: number): Promise<Servers> {
  return new Servers(await Promise.all(Array.from({ length: count }, () => openScene())))
}

/** One scene a server. */
export class Servers implements AsyncDisposable {
  readonly scenes: readonly Scene[]

  /** Use {@link openServers}. */
  constructor(scenes: readonly Scene[]) {
    this.scenes = scenes
  }

  /** The scene of a server. */
  at(place: number): Scene {
    const scene = this.scenes[place]
    if (scene === undefined) throw new Error(`there is no server ${String(place)}`)
    return scene
  }

  /** A Holdfast on each server, as one process has them. */
  process(options: HoldfastOptions = {}): readonly Holdfast[] {
    return this.scenes.map((scene) => scene.holdfast(options))
  }

  /** A lock over all of them, connected, as one process has it. */
  async red(name: string, options: HoldfastOptions = {}, red: RedLockOptions = {}): Promise<RedLock> {
    return redOn(name, this.process(options), red)
  }

  /** How many servers have the key; only of those that answer. */
  async count(
    name: string,
    places: readonly number[] = this.scenes.map((_, place) => place),
  ): Promise<number> {
    const there = await Promise.all(places.map((place) => this.at(place).command('EXISTS', name)))
    return there.filter((one) => one === 1).length
  }

  /** Resolves when these servers have no such key. */
  untilGone(name: string, places?: readonly number[]): Promise<void> {
    return eventually(async () => (await this.count(name, places)) === 0, `${name} is gone everywhere`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { server } of this.scenes) if (server.running) server.resume()
    await Promise.all(this.scenes.map((scene) => scene[Symbol.asyncDispose]()))
  }
}

/** A lock over these members, once all have answered. */
export async function redOn(
  name: string,
  members: readonly Holdfast[],
  options: RedLockOptions = {},
): Promise<RedLock> {
  await Promise.all(members.map((member) => member.lock(name).isLocked()))
  const [first] = members
  if (first === undefined) throw new Error('there is no server')
  return first.redLock(name, members, options)
}
