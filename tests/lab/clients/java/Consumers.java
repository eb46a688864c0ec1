import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A group member of either protocol (group.protocol=classic or consumer) that commits what it has read. */
final class Consumers {
    private Consumers() { }

    static KafkaConsumer<String, String> consumer(Properties settings) {
        settings.putIfAbsent("auto.offset.reset", "earliest");
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    /** Says what the member owns after each rebalance. */
    record Reporter(KafkaConsumer<String, String> consumer) implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) { }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            String owned = consumer.assignment().stream().map(p -> "" + p.partition()).sorted().collect(Collectors.joining(","));
            var member = consumer.groupMetadata();
            Lab.emit("{\"event\":\"session\",\"member_id\":\"" + member.memberId() + "\",\"generation\":" + member.generationId()
                + ",\"partitions\":[" + owned + "]}");
        }
    }

    /** Reads topic=T; commits after every poll that gave records with commit=sync, else by the client's own timer. */
    static void consume(Lab.Words words) throws Exception {
        Properties settings = words.settings();
        boolean sync = "sync".equals(words.values().get("commit"));
        settings.put("enable.auto.commit", sync ? "false" : "true");
        settings.putIfAbsent("auto.commit.interval.ms", "500");
        long read = 0;
        try (KafkaConsumer<String, String> consumer = consumer(settings)) {
            consumer.subscribe(List.of(words.get("topic")), new Reporter(consumer));
            while (Lab.goesOn(0)) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                read += records.count();
                if (sync && !records.isEmpty()) {
                    consumer.commitSync();
                }
            }
        }
        Lab.emit("{\"event\":\"closed\",\"records\":" + read + "}");
    }
}
