import java.util.Collections;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A producer or a group member on a Java client of any version from 0.9 to 2.x; it is compiled anew for each of them.
 *
 * In: produce or consume, then NAME=VALUE words; every name with a dot is a client setting. Out: JSON lines.
 * It ends by itself, when all is sent or count=N records are read.
 */
public final class OldClient {
    private OldClient() { }

    /** Sends 4 records to each of two partitions of topic=T with each of codecs=none,gzip,... */
    static void produce(Properties words, Properties settings) throws Exception {
        int sent = 0;
        for (String codec : words.getProperty("codecs").split(",")) {
            Properties own = new Properties();
            own.putAll(settings);
            own.put("compression.type", codec);
            own.put("linger.ms", "20");
            KafkaProducer<String, String> producer = new KafkaProducer<>(own, new StringSerializer(), new StringSerializer());
            for (int i = 0; i < 8; i++, sent++) {
                producer.send(new ProducerRecord<>(words.getProperty("topic"), i % 2, "key-" + i, "shipped shipped shipped " + i));
            }
            producer.close();
        }
        System.out.println("{\"event\":\"closed\",\"records\":" + sent + "}");
    }

    /** Reads topic=T as a group member and commits after every poll that gave records. */
    @SuppressWarnings("deprecation")
    static void consume(Properties words, Properties settings) {
        int read = 0;
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(Collections.singletonList(words.getProperty("topic")));
        while (read < Integer.parseInt(words.getProperty("count"))) {
            ConsumerRecords<String, String> records = consumer.poll(200L);
            read += records.count();
            if (!records.isEmpty()) {
                consumer.commitSync();
            }
        }
        consumer.close();
        System.out.println("{\"event\":\"closed\",\"records\":" + read + "}");
    }

    public static void main(String[] args) throws Exception {
        Properties words = new Properties();
        Properties settings = new Properties();
        for (int i = 1; i < args.length; i++) {
            String[] parts = args[i].split("=", 2);
            (parts[0].contains(".") ? settings : words).put(parts[0], parts[1]);
        }
        if (args[0].equals("produce")) {
            produce(words, settings);
        } else {
            consume(words, settings);
        }
    }
}
