import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A producer of the incidents: topic=T, rate=N records a second of size=N bytes, with transactional.id=... in
 * transactions of batch=N records.
 *
 * hang_after=N leaves the transaction after N good ones open for hang_ms=N (0: until told to stop), then commits it.
 */
final class Senders {
    private static final int ROUNDS_PER_SECOND = 5;

    private Senders() { }

    private static long number(Lab.Words words, String name, long otherwise) {
        return Long.parseLong(words.values().getOrDefault(name, "" + otherwise));
    }

    /** Sends until told to stop; a producer that failed for good is made again after a second, as a supervisor does. */
    static void send(Lab.Words words) throws Exception {
        do {
            session(words);
        } while (Lab.goesOn(1000));
    }

    private static void session(Lab.Words words) throws InterruptedException {
        Properties settings = words.settings();
        if (words.values().containsKey("acks")) {  // the one setting without a dot
            settings.put("acks", words.get("acks"));
        }
        boolean transactional = settings.containsKey("transactional.id");
        long rate = Math.max(1, number(words, "rate", 50) / ROUNDS_PER_SECOND);
        String filler = "x".repeat((int) number(words, "size", 40));
        long hangAfter = number(words, "hang_after", Long.MAX_VALUE);
        long sent = 0;
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            if (transactional) {
                producer.initTransactions();
            }
            Lab.emit("{\"event\":\"session\"}");
            for (long round = 0; Lab.goesOn(1000 / ROUNDS_PER_SECOND); round++) {
                sent += round(words, producer, transactional, rate, filler, sent);
                if (transactional && round == hangAfter) {
                    hang(words);
                }
                if (transactional) {
                    producer.commitTransaction();
                }
            }
        } catch (KafkaException e) {
            Workers.error(e);
        }
        Lab.emit("{\"event\":\"closed\",\"records\":" + sent + "}");
    }

    private static long round(Lab.Words words, KafkaProducer<String, String> producer, boolean transactional, long rate, String filler, long sent) {
        if (transactional) {
            producer.beginTransaction();
        }
        for (long i = 0; i < rate; i++) {
            producer.send(new ProducerRecord<>(words.get("topic"), "key-" + (sent + i) % 50, filler + (sent + i)), (metadata, e) -> {
                if (e != null) {
                    Workers.error(e);
                }
            });
        }
        producer.flush();
        return rate;
    }

    private static void hang(Lab.Words words) throws InterruptedException {
        long hangMs = number(words, "hang_ms", 0);
        Lab.emit("{\"event\":\"hanging\"}");
        Lab.goesOn(hangMs == 0 ? Long.MAX_VALUE : hangMs);
    }
}
