import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * The lab's clients on the Java client of the broker's own version: topics, produce, consume,
 * transact, describe, administer, share, watch.
 *
 * In: a command, then NAME=VALUE words; every name with a dot is a client setting. Out: JSON lines on standard output.
 * SIGTERM ends a command in order.
 */
public final class Lab {
    private static final CountDownLatch STOP = new CountDownLatch(1);

    private Lab() { }

    interface Command {
        void run(Words words) throws Exception;
    }

    /** The NAME=VALUE words of a command. */
    record Words(Map<String, String> values) {
        String get(String name) {
            String value = values.get(name);
            if (value == null) {
                throw new IllegalArgumentException("missing " + name + "=");
            }
            return value;
        }

        /** The numbers of NAME=1,2,3. */
        List<Integer> numbers(String name) {
            return Arrays.stream(get(name).split(",")).map(Integer::valueOf).toList();
        }

        Properties settings() {
            Properties settings = new Properties();
            values.forEach((name, value) -> {
                if (name.contains(".")) {
                    settings.put(name, value);
                }
            });
            return settings;
        }
    }

    /** Tells whether to go on; waits up to the given time for the end. */
    static boolean goesOn(long waitMs) throws InterruptedException {
        return !STOP.await(waitMs, TimeUnit.MILLISECONDS);
    }

    static synchronized void emit(String json) {
        System.out.println(json);
        System.out.flush();
    }

    static Words words(String[] args) {
        Map<String, String> values = new HashMap<>();
        for (String word : Arrays.asList(args).subList(1, args.length)) {
            String[] parts = word.split("=", 2);
            values.put(parts[0], parts[1]);
        }
        return new Words(values);
    }

    public static void main(String[] args) throws Exception {
        Map<String, Command> commands = new HashMap<>(Map.of(
            "administer", AdminWork::administer, "share", Shares::share, "topics", Admins::createTopics, "describe", Admins::describe, "produce", Producers::produce,
            "consume", Consumers::consume, "transact", Transactions::transact));
        commands.put("work", Workers::work);
        commands.put("send", Senders::send);
        commands.put("shareWork", Shares::work);
        commands.put("quota", AdminRights::quota);
        commands.put("watch", Watch::watch);
        Thread worker = Thread.currentThread();
        boolean[] failed = {false};
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            STOP.countDown();
            try {
                worker.join(20_000);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            // A process that was asked to end and did so is no failure, whatever the signal's own status is.
            Runtime.getRuntime().halt(failed[0] || worker.isAlive() ? 1 : 0);
        }));
        try {
            commands.get(args[0]).run(words(args));
        } catch (Exception e) {
            failed[0] = true;
            e.printStackTrace();
        }
    }
}
