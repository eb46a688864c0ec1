import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/**
 * A group member of the incidents: reads topics=A,B as a small application does, with the faults that words ask for.
 *
 * commit=auto|sync|record|last|never, handle_ms=N for each record, poison_ms=N for a record that begins with "poison",
 * pause=PARTITION after pause_after=N records. pattern=P: the broker chooses the topics that fit it.
 */
final class Workers {
    private final Lab.Words words;
    private final String commit;
    private final long handleMs;
    private final long poisonMs;
    private final Map<TopicPartition, Long> last = new HashMap<>();
    private long read;

    private Workers(Lab.Words words) {
        this.words = words;
        commit = words.values().getOrDefault("commit", "auto");
        handleMs = number("handle_ms", 0);
        poisonMs = number("poison_ms", 0);
    }

    static void work(Lab.Words words) throws Exception {
        new Workers(words).run();
    }

    private long number(String name, long otherwise) {
        return Long.parseLong(words.values().getOrDefault(name, "" + otherwise));
    }

    private void run() throws Exception {
        Properties settings = words.settings();
        settings.put("enable.auto.commit", "" + "auto".equals(commit));
        settings.putIfAbsent("auto.commit.interval.ms", "1000");
        long pauseAfter = number("pause_after", Long.MAX_VALUE);
        try (KafkaConsumer<String, String> consumer = Consumers.consumer(settings)) {
            if (words.values().containsKey("pattern")) {
                consumer.subscribe(new SubscriptionPattern(words.get("pattern")), new Reporter(consumer));
            } else {
                consumer.subscribe(Arrays.asList(words.get("topics").split(",")), new Reporter(consumer));
            }
            while (Lab.goesOn(0)) {
                try {
                    var records = consumer.poll(Duration.ofMillis(200));
                    for (ConsumerRecord<String, String> record : records) {
                        handle(consumer, record);
                    }
                    if (!records.isEmpty() && ("sync".equals(commit) || "last".equals(commit))) {
                        commitHandled(consumer);
                    }
                    if (read >= pauseAfter) {
                        pauseAfter = Long.MAX_VALUE;
                        pause(consumer, (int) number("pause", 0));
                    }
                } catch (KafkaException e) {
                    error(e);
                    Lab.goesOn(200);
                }
            }
        }
        Lab.emit("{\"event\":\"closed\",\"records\":" + read + ",\"last\":" + json(last) + "}");
    }

    private void handle(KafkaConsumer<String, String> consumer, ConsumerRecord<String, String> record) throws InterruptedException {
        TopicPartition partition = new TopicPartition(record.topic(), record.partition());
        if (!last.containsKey(partition)) {
            Lab.emit("{\"event\":\"reading\",\"partition\":\"" + partition + "\",\"offset\":" + record.offset() + "}");
        }
        if (poisonMs > 0 && record.value().startsWith("poison")) {
            Lab.emit("{\"event\":\"poison\",\"partition\":\"" + partition + "\",\"offset\":" + record.offset() + "}");
            Thread.sleep(poisonMs);
        }
        if (handleMs > 0) {
            Thread.sleep(handleMs);
        }
        last.put(partition, record.offset());
        read++;
        if ("record".equals(commit)) {
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(record.offset() + 1)));
        }
    }

    private void commitHandled(KafkaConsumer<String, String> consumer) {
        long step = "last".equals(commit) ? 0 : 1;
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        consumer.assignment().stream().filter(last::containsKey)
            .forEach(partition -> offsets.put(partition, new OffsetAndMetadata(last.get(partition) + step)));
        consumer.commitSync(offsets);
    }

    private static void pause(KafkaConsumer<String, String> consumer, int number) {
        var chosen = consumer.assignment().stream().filter(p -> p.partition() == number).toList();
        consumer.pause(chosen);
        Lab.emit("{\"event\":\"paused\",\"partitions\":" + names(chosen) + "}");
    }

    static void error(Exception e) {
        String text = ("" + e.getMessage()).replace("\\", "").replace("\"", "'").replace("\n", " ");
        Lab.emit("{\"event\":\"error\",\"error\":\"" + e.getClass().getSimpleName() + ": " + text + "\"}");
    }

    private static String names(Collection<TopicPartition> partitions) {
        return partitions.stream().map(p -> "\"" + p + "\"").sorted().collect(Collectors.joining(",", "[", "]"));
    }

    private static String json(Map<TopicPartition, Long> offsets) {
        var sorted = new TreeMap<String, Long>();
        offsets.forEach((partition, offset) -> sorted.put(partition.toString(), offset));
        return sorted.entrySet().stream().map(e -> "\"" + e.getKey() + "\":" + e.getValue()).collect(Collectors.joining(",", "{", "}"));
    }

    /** Says what comes and goes; what is read first after that is told again. */
    private final class Reporter implements ConsumerRebalanceListener {
        private final KafkaConsumer<String, String> consumer;

        private Reporter(KafkaConsumer<String, String> consumer) {
            this.consumer = consumer;
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            Lab.emit("{\"event\":\"revoked\",\"partitions\":" + names(partitions) + "}");
            last.keySet().removeAll(partitions);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            Lab.emit("{\"event\":\"lost\",\"partitions\":" + names(partitions) + "}");
            last.keySet().removeAll(partitions);
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            var member = consumer.groupMetadata();
            Lab.emit("{\"event\":\"session\",\"member\":\"" + member.memberId() + "\",\"generation\":" + member.generationId()
                + ",\"partitions\":" + names(consumer.assignment()) + "}");
        }
    }
}
