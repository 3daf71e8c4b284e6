package holdfast.interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.SingleServerConfig;

/**
 * Reads one command a line, answers with one line each, in the order in which the commands end:
 *
 * <pre>
 *   ID THREAD COMMAND WORD…      →      ID ok VALUE | ID lacks METHOD | ID failed CLASS MESSAGE
 * </pre>
 *
 * Every THREAD is a Java thread of that name, hence an owner of its own; its commands run one after the other.
 */
public final class Main {
    private final RedissonClient redisson;
    private final Objects objects;
    private final PrintStream out;
    private final Map<String, Worker> workers = new ConcurrentHashMap<>();

    private Main(List<RedissonClient> clients, PrintStream out) {
        this.redisson = clients.get(0);
        this.objects = new Objects(clients);
        this.out = out;
    }

    public static void main(String[] args) throws Exception {
        // Whatever a library prints must not end up among the answers.
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        List<RedissonClient> clients = new ArrayList<>();
        for (String port : System.getProperty("ports").split(",")) clients.add(Redisson.create(config(port)));
        out.println("ready " + clients.get(0).getId());
        new Main(clients, out).serve();
        // The program that started us is gone, or told us to end. Locks are left as they are.
        Runtime.getRuntime().halt(0);
    }

    private static Config config(String port) throws ReflectiveOperationException {
        Config config = new Config();
        config.setThreads(4);
        config.setNettyThreads(4);
        config.setLockWatchdogTimeout(Long.getLong("watchdog", 30_000));
        Long fairWait = Long.getLong("fairWait");
        // Since 3.46.0.
        if (fairWait != null) Config.class.getMethod("setFairLockWaitTimeout", long.class).invoke(config, fairWait);
        SingleServerConfig server = config.useSingleServer()
                .setAddress("redis://127.0.0.1:" + port)
                .setConnectionMinimumIdleSize(2)
                .setConnectionPoolSize(32)
                .setSubscriptionConnectionMinimumIdleSize(1);
        Integer timeout = Integer.getInteger("timeout");
        if (timeout != null) server.setTimeout(timeout).setRetryAttempts(0);
        return config;
    }

    private void serve() throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            List<String> words = List.of(line.split(" "));
            Worker worker = workers.computeIfAbsent(words.get(1), Worker::new);
            switch (words.get(2)) {
                case "interrupt" -> {
                    worker.interrupt();
                    answer(words.get(0), "ok -");
                }
                case "asleep" -> answer(words.get(0), "ok " + Words.encode(worker.asleep()));
                default -> worker.run(
                        () -> answer(words.get(0), outcome(words.get(2), words.subList(3, words.size()))));
            }
        }
    }

    private void answer(String id, String words) {
        synchronized (out) {
            out.println(id + " " + words);
        }
    }

    private String outcome(String command, List<String> words) {
        try {
            return "ok " + Words.encode(execute(command, words));
        } catch (NoSuchMethodException lacking) {
            return "lacks " + Words.text(lacking.getMessage());
        } catch (Throwable thrown) {
            Throwable cause = thrown instanceof InvocationTargetException ? thrown.getCause() : thrown;
            return "failed " + cause.getClass().getSimpleName() + " " + Words.text(String.valueOf(cause.getMessage()));
        }
    }

    private Object execute(String command, List<String> words) throws Exception {
        return switch (command) {
            case "owner" -> redisson.getId() + ":" + Thread.currentThread().getId();
            case "call" -> Calls.call(objects.get(words.get(0)), Words.decode(words.get(1)),
                    words.subList(2, words.size()).stream().map(Words::argument).toList());
            case "methods" -> Calls.declared(words.get(0));
            case "contend" -> Contest.read(redisson, objects, words).run();
            default -> throw new IllegalArgumentException("unknown command: " + command);
        };
    }
}
