import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.GroupIdNotFoundException;

/** Asks the broker again and again how groups, logs, transactions and replicas are, and prints what it says. */
final class Watch {
    private final Admin admin;
    private final List<String> groups;
    private final List<String> topics;
    private final List<String> transactions;

    private Watch(Admin admin, Lab.Words words) {
        this.admin = admin;
        groups = List.of(words.get("groups").split(","));
        topics = List.of(words.get("topics").split(","));
        transactions = List.of(words.get("transactions").split(","));
    }

    /** For groups=A,B topics=T,U transactions=X every pause_ms=N, until told to stop. */
    static void watch(Lab.Words words) throws Exception {
        try (Admin admin = Admin.create(words.settings())) {
            Watch watch = new Watch(admin, words);
            while (Lab.goesOn(Long.parseLong(words.get("pause_ms")))) {
                ask("groups", watch::groups);
                ask("offsets", watch::offsets);
                ask("ends", watch::ends);
                ask("transactions", watch::transactions);
                ask("replicas", watch::replicas);
            }
        }
    }

    /** Prints an answer with the time before and after the question; an error is none. */
    private static void ask(String kind, Callable<String> question) throws Exception {
        long from = now();
        try {
            String told = question.call();
            Lab.emit("{\"event\":\"" + kind + "\",\"from\":" + from + ",\"to\":" + now() + ",\"told\":{" + told + "}}");
        } catch (ExecutionException e) {
            Lab.emit("{\"event\":\"failed\",\"kind\":\"" + kind + "\",\"why\":" + text("" + e.getCause()) + "}");
        }
    }

    private static long now() {
        Instant time = Instant.now();
        return time.getEpochSecond() * 1_000_000_000 + time.getNano();
    }

    /** A group that is not there is Dead, as DescribeGroups says up to version 5. */
    private String groups() throws Exception {
        List<String> told = new ArrayList<>();
        for (var one : admin.describeConsumerGroups(groups).describedGroups().entrySet()) {
            try {
                told.add(text(one.getKey()) + ":" + group(one.getValue().get()));
            } catch (ExecutionException e) {
                if (!(e.getCause() instanceof GroupIdNotFoundException)) {
                    throw e;
                }
                told.add(text(one.getKey()) + ":{\"state\":\"Dead\",\"type\":null,\"assignor\":null,\"epoch\":null,\"members\":{}}");
            }
        }
        return String.join(",", told);
    }

    private static String group(ConsumerGroupDescription group) {
        Node coordinator = group.coordinator();
        return "{\"state\":" + text("" + group.groupState()) + ",\"type\":" + text("" + group.type())
            + ",\"assignor\":" + text(group.partitionAssignor()) + ",\"coordinator\":"
            + text(coordinator.host() + ":" + coordinator.port() + " (" + coordinator.id() + ")")
            + ",\"epoch\":" + group.targetAssignmentEpoch().map(String::valueOf).orElse("null")
            + ",\"members\":{" + group.members().stream().map(Watch::member).collect(Collectors.joining(",")) + "}}";
    }

    private static String member(MemberDescription member) {
        Collection<TopicPartition> has = member.assignment().topicPartitions();
        String parts = has.stream().map(part -> text("" + part)).sorted().collect(Collectors.joining(","));
        return text(member.consumerId()) + ":{\"host\":" + text(member.host().replace("/", "")) + ",\"client_id\":"
            + text(member.clientId()) + ",\"instance\":" + member.groupInstanceId().map(Watch::text).orElse("null")
            + ",\"has\":[" + parts + "]}";
    }

    private String offsets() throws Exception {
        Map<String, ListConsumerGroupOffsetsSpec> wanted = new HashMap<>();
        groups.forEach(group -> wanted.put(group, new ListConsumerGroupOffsetsSpec()));
        return admin.listConsumerGroupOffsets(wanted).all().get().entrySet().stream().map(one -> {
            Map<String, Long> stored = new TreeMap<>();
            one.getValue().forEach((part, offset) -> {
                if (offset != null) {
                    stored.put("" + part, offset.offset());
                }
            });
            return text(one.getKey()) + ":" + numbers(stored);
        }).collect(Collectors.joining(","));
    }

    private String ends() throws Exception {
        Map<TopicPartition, OffsetSpec> wanted = new HashMap<>();
        admin.describeTopics(topics).allTopicNames().get().values().forEach(topic -> topic.partitions().forEach(
            part -> wanted.put(new TopicPartition(topic.name(), part.partition()), OffsetSpec.latest())));
        Map<String, Long> ends = new TreeMap<>();
        admin.listOffsets(wanted).all().get().forEach((part, told) -> ends.put("" + part, told.offset()));
        String line = numbers(ends);
        return line.substring(1, line.length() - 1);
    }

    private String transactions() throws Exception {
        return admin.describeTransactions(transactions).all().get().entrySet().stream()
            .map(one -> text(one.getKey()) + ":{\"state\":" + text("" + one.getValue().state())
                + ",\"producer_id\":" + one.getValue().producerId() + "}")
            .collect(Collectors.joining(","));
    }

    private String replicas() throws Exception {
        return admin.describeTopics(topics).allTopicNames().get().values().stream()
            .flatMap(topic -> topic.partitions().stream().map(part -> text(topic.name() + "-" + part.partition())
                + ":[" + part.leader().id() + "," + part.isr().stream().map(node -> "" + node.id()).sorted().toList() + "]"))
            .collect(Collectors.joining(","));
    }

    private static String numbers(Map<String, Long> values) {
        return "{" + values.entrySet().stream().map(one -> text(one.getKey()) + ":" + one.getValue())
            .collect(Collectors.joining(",")) + "}";
    }

    private static String text(String value) {
        return "\"" + value.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }
}
