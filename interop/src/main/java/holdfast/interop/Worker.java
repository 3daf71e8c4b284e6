package holdfast.interop;

import java.util.Arrays;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** One Java thread that runs what it is given, in order. */
final class Worker {
    private final ExecutorService executor;
    private volatile Thread thread;

    Worker(String name) {
        executor = Executors.newSingleThreadExecutor(body -> {
            thread = new Thread(body, name);
            thread.setDaemon(true);
            return thread;
        });
    }

    void run(Runnable task) {
        executor.execute(task);
    }

    void interrupt() {
        if (thread != null) thread.interrupt();
    }

    /** Whether it waits for a message: not before, in the middle of an attempt. */
    boolean asleep() {
        if (thread == null) return false;
        return Arrays.stream(thread.getStackTrace())
                .map(StackTraceElement::getClassName)
                .anyMatch(name -> name.equals("java.util.concurrent.Semaphore") || name.endsWith(".ReclosableLatch"));
    }
}
