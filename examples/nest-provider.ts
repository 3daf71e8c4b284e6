// A provider and an interceptor for NestJS: one run of a handler at a time, in all processes. The interfaces stand
// for Nest's own, so that this program runs without Nest; with it, import them from '@nestjs/common' and decorate
// the class with @Injectable().
import { Redis } from 'ioredis'
import { defer, from, lastValueFrom, type Observable } from 'rxjs'
import { Holdfast } from 'holdfast'

interface ExecutionContext {
  getHandler(): { readonly name: string }
}
interface CallHandler<T = unknown> {
  handle(): Observable<T>
}

// --- from here ---
const redis = new Redis(process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379')
const holdfastProvider = { provide: Holdfast, useFactory: (): Holdfast => new Holdfast(redis) }

class LockInterceptor {
  readonly #holdfast: Holdfast

  constructor(holdfast: Holdfast) {
    this.#holdfast = holdfast
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const lock = this.#holdfast.lock(`handler:${context.getHandler().name}`)
    return from(lock.using({ waitTime: 5_000 }, () => lastValueFrom(next.handle())))
  }
}
// --- to here ---

const holdfast = holdfastProvider.useFactory()
const interceptor = new LockInterceptor(holdfast)
let inside = 0
let most = 0
const handler: CallHandler<string> = {
  handle: () =>
    defer(async () => {
      most = Math.max(most, ++inside)
      await new Promise((resolve) => setTimeout(resolve, 20))
      inside -= 1
      return 'done'
    }),
}
const context: ExecutionContext = { getHandler: () => ({ name: 'rebuildIndex' }) }
const requests = [1, 2, 3].map(() => lastValueFrom(interceptor.intercept(context, handler)))
const answers = await Promise.all(requests)
console.log(`three requests answered ${answers.join(', ')}; at most ${String(most)} at a time inside`)
await holdfast.close()
await redis.quit()
if (most !== 1) throw new Error('The handler ran twice at once')
if (answers.some((answer) => answer !== 'done')) throw new Error('An answer was lost on the way')
