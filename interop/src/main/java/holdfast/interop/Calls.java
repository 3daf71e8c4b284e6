package holdfast.interop;

import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;

/** Calls by name, since the versions of Redisson differ in what they have. */
final class Calls {
    private Calls() {}

    static Object call(Object target, String name, List<?> arguments) throws ReflectiveOperationException {
        Method method = find(target.getClass(), name, arguments);
        method.setAccessible(true);
        Class<?>[] types = method.getParameterTypes();
        Object[] values = new Object[types.length];
        for (int i = 0; i < types.length; i++) values[i] = as(types[i], arguments.get(i));
        return method.invoke(target, values);
    }

    /** The names of what an interface of Redisson's adds to those that it extends, but for Java's own. */
    static List<String> declared(String type) throws ReflectiveOperationException {
        return Arrays.stream(Class.forName("org.redisson.api." + type).getMethods())
                .filter(method -> method.getDeclaringClass().getSimpleName().equals(type)
                        || method.getDeclaringClass().getName().startsWith("java."))
                .map(Method::getName)
                .distinct()
                .sorted()
                .toList();
    }

    private static Method find(Class<?> type, String name, List<?> arguments) throws NoSuchMethodException {
        return Arrays.stream(type.getMethods())
                .filter(method -> method.getName().equals(name) && fits(method.getParameterTypes(), arguments))
                .findFirst()
                .orElseThrow(() -> new NoSuchMethodException(type.getSimpleName() + "." + name + arguments));
    }

    private static boolean fits(Class<?>[] types, List<?> arguments) {
        if (types.length != arguments.size()) return false;
        for (int i = 0; i < types.length; i++) {
            boolean number = types[i] == int.class || types[i] == long.class;
            if (number ? !(arguments.get(i) instanceof Long) : !types[i].isInstance(arguments.get(i))) return false;
        }
        return true;
    }

    private static Object as(Class<?> type, Object value) {
        return type == int.class ? Math.toIntExact((Long) value) : value;
    }
}
