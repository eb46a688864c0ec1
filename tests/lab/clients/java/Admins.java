import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;

/** What an operator's tools ask: topics to make, groups and log ends to look at. */
final class Admins {
    private Admins() { }

    /** Makes the topics of topics=NAME:PARTITIONS,... with copies=N replicas (without it: one). */
    static void createTopics(Lab.Words words) throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        short copies = Short.parseShort(words.values().getOrDefault("copies", "1"));
        for (String wanted : words.get("topics").split(",")) {
            String[] parts = wanted.split(":");
            topics.add(new NewTopic(parts[0], Integer.parseInt(parts[1]), copies));
        }
        try (Admin admin = Admin.create(words.settings())) {
            admin.createTopics(topics).all().get();
        }
    }

    /** Describes the groups classic=A,B and consumer=C,D, each with the API of its protocol, and lists log ends. */
    static void describe(Lab.Words words) throws Exception {
        List<String> classic = List.of(words.get("classic").split(","));
        List<String> consumer = List.of(words.get("consumer").split(","));
        Map<String, Integer> members = new TreeMap<>();
        try (Admin admin = Admin.create(words.settings())) {
            admin.describeClassicGroups(classic).all().get().forEach((id, group) -> members.put(id, group.members().size()));
            admin.describeConsumerGroups(consumer).all().get().forEach((id, group) -> members.put(id, group.members().size()));
            for (String group : members.keySet()) {
                admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
            }
            Map<TopicPartition, OffsetSpec> ends = new TreeMap<>((a, b) -> a.toString().compareTo(b.toString()));
            for (String topic : words.get("topics").split(",")) {
                ends.put(new TopicPartition(topic, 0), OffsetSpec.latest());
            }
            admin.listOffsets(ends).all().get();
        }
        members.forEach((group, count) ->
            Lab.emit("{\"event\":\"described\",\"group\":\"" + group + "\",\"members\":" + count + "}"));
    }
}
