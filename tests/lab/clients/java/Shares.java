import java.time.Duration;
import java.util.List;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A member of a share group (KIP-932) that says of each record what became of it. */
final class Shares {
    private Shares() { }

    /** Reads topic=T until told to stop: gives some records back, rejects a few, accepts the others. */
    static void share(Lab.Words words) throws Exception {
        var settings = words.settings();
        settings.put("share.acknowledgement.mode", "explicit");
        int accepted = 0;
        int released = 0;
        int rejected = 0;
        try (var consumer = new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(words.get("topic")));
            while (Lab.goesOn(0)) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                for (ConsumerRecord<String, String> record : records) {
                    if (record.offset() % 13 == 7) {
                        consumer.acknowledge(record, AcknowledgeType.REJECT);
                        rejected++;
                    } else if (record.offset() % 5 == 2 && record.deliveryCount().orElse((short) 1) == 1) {
                        consumer.acknowledge(record, AcknowledgeType.RELEASE);
                        released++;
                    } else {
                        consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                        accepted++;
                    }
                }
                if (!records.isEmpty() && accepted % 2 == 0) {
                    consumer.commitSync();  // ShareAcknowledge; otherwise the next ShareFetch carries it
                }
                if (accepted > 0) {
                    Lab.emit("{\"event\":\"working\",\"accepted\":" + accepted + "}");
                }
            }
        }
        Lab.emit("{\"event\":\"closed\",\"accepted\":" + accepted + ",\"released\":" + released + ",\"rejected\":" + rejected + "}");
    }

    /** Reads topic=T until told to stop and gives back each time what begins with "poison"; hold_ms=N: works that long on what it got. */
    static void work(Lab.Words words) throws Exception {
        long holdMs = Long.parseLong(words.values().getOrDefault("hold_ms", "0"));
        var settings = words.settings();
        settings.put("share.acknowledgement.mode", "explicit");
        try (var consumer = new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(words.get("topic")));
            while (Lab.goesOn(0)) {
                var records = consumer.poll(Duration.ofMillis(200));
                if (holdMs > 0 && !records.isEmpty()) {
                    Lab.emit("{\"event\":\"working\",\"records\":" + records.count() + "}");
                    Lab.goesOn(holdMs);
                }
                for (ConsumerRecord<String, String> record : records) {
                    boolean poison = record.value().startsWith("poison");
                    consumer.acknowledge(record, poison ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                    if (poison) {
                        Lab.emit("{\"event\":\"released\",\"partition\":" + record.partition() + ",\"offset\":" + record.offset()
                            + ",\"delivery\":" + record.deliveryCount().orElse((short) 0) + "}");
                        Lab.goesOn(1500);
                    }
                }
                consumer.commitSync();
            }
        }
        Lab.emit("{\"event\":\"closed\"}");
    }
}
