package holdfast.interop;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/**
 * Redisson's objects by reference: {@code factory/name}, {@code getReadWriteLock/name/readLock}, or, for several as one,
 * {@code getMultiLock/reference/reference…} (or {@code getRedLock}) with the inner ones encoded. {@code 2@reference} is
 * the object on the third server. The same reference gives the same object.
 */
final class Objects {
    /** One per server. */
    private final List<RedissonClient> clients;
    private final Map<String, Object> made = new ConcurrentHashMap<>();

    Objects(List<RedissonClient> clients) {
        this.clients = clients;
    }

    /** Throws NoSuchMethodException where this version of Redisson lacks the object. */
    Object get(String reference) throws ReflectiveOperationException {
        Object known = made.get(reference);
        if (known != null) return known;
        int at = reference.indexOf('@');
        RedissonClient redisson = clients.get(at < 0 ? 0 : Integer.parseInt(reference.substring(0, at)));
        Object fresh = make(redisson, reference.substring(at + 1).split("/"));
        Object first = made.putIfAbsent(reference, fresh);
        return first == null ? fresh : first;
    }

    private Object make(RedissonClient redisson, String[] parts) throws ReflectiveOperationException {
        if (parts[0].equals("getMultiLock")) return redisson.getMultiLock(members(parts));
        if (parts[0].equals("getRedLock")) return redisson.getRedLock(members(parts));
        Object object = RedissonClient.class.getMethod(parts[0], String.class).invoke(redisson, Words.decode(parts[1]));
        return parts.length == 2 ? object : object.getClass().getMethod(parts[2]).invoke(object);
    }

    private RLock[] members(String[] parts) throws ReflectiveOperationException {
        RLock[] locks = new RLock[parts.length - 1];
        for (int i = 0; i < locks.length; i++) locks[i] = (RLock) get(Words.decode(parts[i + 1]));
        return locks;
    }
}
