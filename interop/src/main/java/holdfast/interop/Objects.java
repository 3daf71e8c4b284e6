package holdfast.interop;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/**
 * Redisson's objects by reference: {@code factory/name}, {@code getReadWriteLock/name/readLock}, or, for several as one,
 * {@code getMultiLock/reference/reference…} with the inner ones encoded. The same reference gives the same object.
 */
final class Objects {
    private final RedissonClient redisson;
    private final Map<String, Object> made = new ConcurrentHashMap<>();

    Objects(RedissonClient redisson) {
        this.redisson = redisson;
    }

    /** Throws NoSuchMethodException where this version of Redisson lacks the object. */
    Object get(String reference) throws ReflectiveOperationException {
        Object known = made.get(reference);
        if (known != null) return known;
        Object fresh = make(reference.split("/"));
        Object first = made.putIfAbsent(reference, fresh);
        return first == null ? fresh : first;
    }

    private Object make(String[] parts) throws ReflectiveOperationException {
        if (parts[0].equals("getMultiLock")) return redisson.getMultiLock(members(parts));
        Object object = RedissonClient.class.getMethod(parts[0], String.class).invoke(redisson, Words.decode(parts[1]));
        return parts.length == 2 ? object : object.getClass().getMethod(parts[2]).invoke(object);
    }

    private RLock[] members(String[] parts) throws ReflectiveOperationException {
        RLock[] locks = new RLock[parts.length - 1];
        for (int i = 0; i < locks.length; i++) locks[i] = (RLock) get(Words.decode(parts[i + 1]));
        return locks;
    }
}
