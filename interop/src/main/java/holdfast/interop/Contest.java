package holdfast.interop;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/**
 * Several threads enter an object again and again, and look inside whether somebody is there who must not be:
 *
 * <pre>
 *   C:inside   INCR on entry, DECR on leaving: never above the limit
 *   C:readers  the same for those who share; never together with anybody in C:inside
 *   C:sum      read, pause, written back plus one (only where one at a time is inside)
 *   C:tokens   the fencing tokens in the order of entry
 * </pre>
 */
final class Contest {
    private final RedissonClient redisson;
    private final Object object;
    private final String canary;
    /** {@code alone}, {@code shared}, {@code fenced} or a number: how many may be inside. */
    private final String kind;
    private final int threads;
    private final int times;
    private final long pauseMs;
    private final long leaseMs;

    private Contest(RedissonClient redisson, Object object, List<String> words) {
        this.redisson = redisson;
        this.object = object;
        canary = Words.decode(words.get(1));
        kind = words.get(2);
        threads = Integer.parseInt(words.get(3));
        times = Integer.parseInt(words.get(4));
        pauseMs = Long.parseLong(words.get(5));
        leaseMs = Long.parseLong(words.get(6));
    }

    /** Words: reference, canary, kind, threads, times, pause, lease (0: none). */
    static Contest read(RedissonClient redisson, Objects objects, List<String> words)
            throws ReflectiveOperationException {
        return new Contest(redisson, objects.get(words.get(0)), words);
    }

    /** What went wrong, in words; empty if nothing did. */
    List<String> run() throws InterruptedException, ExecutionException {
        ExecutorService executor = Executors.newFixedThreadPool(threads);
        try {
            List<Future<List<String>>> running = new ArrayList<>();
            for (int i = 0; i < threads; i++) running.add(executor.submit(this::turns));
            List<String> wrong = new ArrayList<>();
            for (Future<List<String>> one : running) wrong.addAll(one.get());
            return wrong;
        } finally {
            executor.shutdownNow();
        }
    }

    private List<String> turns() throws Exception {
        List<String> wrong = new ArrayList<>();
        for (int i = 0; i < times; i++) {
            Object ticket = enter();
            try {
                inside(ticket, wrong);
            } finally {
                leave(ticket);
            }
        }
        return wrong;
    }

    private Object enter() throws Exception {
        if (kind.equals("fenced")) return Calls.call(object, "lockAndGetToken", List.of());
        if (object instanceof RPermitExpirableSemaphore permits)
            return leaseMs > 0 ? permits.acquire(leaseMs, TimeUnit.MILLISECONDS) : permits.acquire();
        if (object instanceof RSemaphore semaphore) semaphore.acquire();
        else if (leaseMs > 0) ((RLock) object).lock(leaseMs, TimeUnit.MILLISECONDS);
        else ((RLock) object).lock();
        return null;
    }

    private void leave(Object ticket) {
        if (object instanceof RPermitExpirableSemaphore permits) permits.release((String) ticket);
        else if (object instanceof RSemaphore semaphore) semaphore.release();
        else ((RLock) object).unlock();
    }

    private void inside(Object token, List<String> wrong) throws InterruptedException {
        switch (kind) {
            case "shared" -> countedIn("readers", Integer.MAX_VALUE, wrong, () -> {
                if (number("inside") > 0) wrong.add("a reader met a writer");
                pause();
            });
            case "alone", "fenced" -> {
                if (token != null) redisson.getList(canary + ":tokens", StringCodec.INSTANCE).add(token.toString());
                countedIn("inside", 1, wrong, () -> {
                    if (number("readers") > 0) wrong.add("a writer met a reader");
                    long sum = number("sum");
                    pause();
                    redisson.getBucket(canary + ":sum", StringCodec.INSTANCE).set(String.valueOf(sum + 1));
                });
            }
            default -> countedIn("inside", Integer.parseInt(kind), wrong, this::pause);
        }
    }

    private interface Work {
        void run() throws InterruptedException;
    }

    private void countedIn(String part, int limit, List<String> wrong, Work work) throws InterruptedException {
        var inside = redisson.getAtomicLong(canary + ":" + part);
        long count = inside.incrementAndGet();
        if (count > limit) wrong.add(count + " were inside");
        try {
            work.run();
        } finally {
            inside.decrementAndGet();
        }
    }

    private long number(String part) {
        Object value = redisson.getBucket(canary + ":" + part, StringCodec.INSTANCE).get();
        return value == null ? 0 : Long.parseLong(value.toString());
    }

    private void pause() throws InterruptedException {
        Thread.sleep(ThreadLocalRandom.current().nextLong(pauseMs + 1));
    }
}
