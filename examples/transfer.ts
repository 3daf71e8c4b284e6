// Money goes from one account to another: both are locked as one, so transfers between the same accounts take turns,
// whichever way they go, and others go on beside them. Nobody deadlocks, although each names its accounts in its own order.
import { Redis } from 'ioredis'
import { Holdfast } from 'holdfast'

const redis = new Redis(process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379')
const holdfast = new Holdfast(redis)

const balance = (account: string): string => `balance:${account}`
const lock = (account: string) => holdfast.lock(`lock:account:${account}`)

async function transfer(from: string, to: string, amount: number): Promise<boolean> {
  return holdfast.multiLock([lock(from), lock(to)]).using({ waitTime: 10_000 }, async (lease) => {
    const [had = 0, has = 0] = (await redis.mget(balance(from), balance(to))).map(Number)
    if (had < amount) return false
    // Read, think, write: what two of them would do to each other without the locks.
    await new Promise((resolve) => setTimeout(resolve, 5))
    lease.assertHeld()
    await redis.mset(balance(from), had - amount, balance(to), has + amount)
    return true
  })
}

const accounts = ['anna', 'bert', 'cleo']
await redis.mset(accounts.flatMap((account) => [balance(account), '100']))

const transfers = Array.from({ length: 30 }, (_, i) =>
  transfer(accounts[i % 3] ?? '', accounts[(i + 1 + (i % 2)) % 3] ?? '', 1 + (i % 7)),
)
const done = (await Promise.all(transfers)).filter(Boolean).length
const balances = (await redis.mget(accounts.map(balance))).map(Number)
const total = balances.reduce((sum, one) => sum + one, 0)
console.log(`${String(done)} transfers, and still ${String(total)} in all`)
if (total !== 300) throw new Error('money was lost, or made')

await holdfast.close()
redis.disconnect()
