import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/**
 * A Streams application that counts records by value: it has a repartition topic and a changelog.
 *
 * In: NAME=VALUE words; names with a dot are settings, topic=T and target=U say where from and where to.
 * Out: a JSON line when it is running and when it has ended. SIGTERM ends it in order.
 */
public final class StreamsApp {
    private StreamsApp() { }

    public static void main(String[] args) throws Exception {
        Properties words = new Properties();
        Properties settings = new Properties();
        for (String word : args) {
            String[] parts = word.split("=", 2);
            (parts[0].contains(".") ? settings : words).put(parts[0], parts[1]);
        }
        settings.put("default.key.serde", Serdes.String().getClass().getName());
        settings.put("default.value.serde", Serdes.String().getClass().getName());
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(words.getProperty("topic"))
            .groupBy((key, value) -> value, Grouped.as("by-value"))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts")).withValueSerde(Serdes.Long()))
            .toStream()
            .to(words.getProperty("target"), Produced.with(Serdes.String(), Serdes.Long()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        CountDownLatch ended = new CountDownLatch(1);
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                System.out.println("{\"event\":\"session\"}");
            } else if (now == KafkaStreams.State.NOT_RUNNING || now == KafkaStreams.State.ERROR) {
                ended.countDown();
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            boolean failed = streams.state() == KafkaStreams.State.ERROR;
            streams.close();
            System.out.println("{\"event\":\"closed\"}");
            System.out.flush();
            // A process that was asked to end and did so is no failure, whatever the signal's own status is.
            Runtime.getRuntime().halt(failed ? 1 : 0);
        }));
        streams.start();
        ended.await();
    }
}
