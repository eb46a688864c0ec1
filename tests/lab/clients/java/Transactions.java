import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;

/** Read, write and commit in one transaction. */
final class Transactions {
    /** Time for the broker to write a transaction's markers; a next one that begins earlier is told to wait (error 51). */
    private static final long PAUSE_MS = 600;

    private Transactions() { }

    /** Copies topic=T to target=U until told to stop; offsets go with the transaction (TxnOffsetCommit). */
    static void transact(Lab.Words words) throws Exception {
        Properties reading = new Properties();
        Properties writing = new Properties();
        words.settings().forEach((name, value) -> {
            boolean forProducer = name.equals("transactional.id");
            boolean forConsumer = name.equals("group.id") || name.equals("group.protocol");
            if (!forProducer) {
                reading.put(name, value);
            }
            if (!forConsumer) {
                writing.put(name, value);
            }
        });
        reading.put("enable.auto.commit", "false");
        reading.put("isolation.level", "read_committed");
        int transactions = 0;
        try (KafkaConsumer<String, String> consumer = Consumers.consumer(reading);
             KafkaProducer<String, String> producer = new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            consumer.subscribe(List.of(words.get("topic")), new Consumers.Reporter(consumer));
            while (Lab.goesOn(PAUSE_MS)) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
                records.forEach(record -> {
                    producer.send(new ProducerRecord<>(words.get("target"), record.key(), record.value()));
                    next.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
                });
                producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
                producer.commitTransaction();
                transactions++;
            }
        }
        Lab.emit("{\"event\":\"closed\",\"transactions\":" + transactions + "}");
    }
}
