package holdfast.interop;

import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/** Values as words of a line: percent-encoded, behind one character that tells their kind. */
final class Words {
    private Words() {}

    static String text(String value) {
        return URLEncoder.encode(value, StandardCharsets.UTF_8);
    }

    static String decode(String word) {
        return URLDecoder.decode(word, StandardCharsets.UTF_8);
    }

    /** {@code -} null, {@code =} anything by its text, {@code [} a list of texts. */
    static String encode(Object value) {
        if (value == null) return "-";
        if (!(value instanceof Collection<?> items)) return "=" + text(String.valueOf(value));
        return "[" + items.stream().map(item -> text(String.valueOf(item))).collect(Collectors.joining(","));
    }

    /** {@code n} number, {@code s} string, {@code l} list of strings, {@code d} duration in ms, {@code u} unit ms. */
    static Object argument(String word) {
        String rest = word.substring(1);
        return switch (word.charAt(0)) {
            case 'n' -> Long.valueOf(rest);
            case 's' -> decode(rest);
            case 'l' -> rest.isEmpty() ? List.of() : Arrays.stream(rest.split(",")).map(Words::decode).toList();
            case 'd' -> Duration.ofMillis(Long.parseLong(rest));
            case 'u' -> TimeUnit.MILLISECONDS;
            default -> throw new IllegalArgumentException("unknown kind of argument: " + word);
        };
    }
}
