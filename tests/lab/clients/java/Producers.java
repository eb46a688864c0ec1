import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** A feed: rounds of small batches, one producer per codec. */
final class Producers {
    private Producers() { }

    /** Sends to topic=T with each of codecs=none,gzip,... in turn, every pause_ms=N, until told to stop. */
    static void produce(Lab.Words words) throws Exception {
        List<KafkaProducer<String, String>> producers = new ArrayList<>();
        for (String codec : words.get("codecs").split(",")) {
            Properties settings = words.settings();
            settings.put("compression.type", codec);
            settings.put("client.id", words.get("client.id") + "-" + codec);
            settings.putIfAbsent("linger.ms", "20");
            producers.add(new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer()));
        }
        String topic = words.get("topic");
        int partitions = producers.get(0).partitionsFor(topic).size();
        long pauseMs = Long.parseLong(words.get("pause_ms"));
        for (int round = 0; Lab.goesOn(pauseMs); round++) {
            for (KafkaProducer<String, String> producer : producers) {
                for (int partition = 0; partition < partitions; partition++) {
                    for (int i = 0; i < 4; i++) {
                        String value = "{\"round\":" + round + ",\"state\":\"shipped shipped shipped shipped\"}";
                        producer.send(new ProducerRecord<>(topic, partition, "key-" + i, value));
                    }
                }
            }
        }
        producers.forEach(KafkaProducer::close);
    }
}
