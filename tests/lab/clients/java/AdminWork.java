import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringSerializer;

/** An operator's work on topics, settings, groups and transactions: everything is changed, looked at and removed. */
final class AdminWork {
    private AdminWork() { }

    /** Prints that a piece of work went well. */
    static <T> T done(String work, KafkaFuture<T> future) throws Exception {
        T result = future.get();
        Lab.emit("{\"event\":\"done\",\"work\":\"" + work + "\"}");
        return result;
    }

    /** Prints that the broker refused a piece of work, as it should. */
    static void refused(String work, KafkaFuture<?> future) throws Exception {
        try {
            future.get();
        } catch (ExecutionException e) {
            Lab.emit("{\"event\":\"refused\",\"work\":\"" + work + "\",\"error\":\"" + e.getCause().getClass().getSimpleName() + "\"}");
            return;
        }
        throw new IllegalStateException(work + " was not refused");
    }

    /** The parts of parts=A,B,... in their order, with topic=T, group=G and the brokers broker=N, other=M. */
    static void administer(Lab.Words words) throws Exception {
        try (Admin admin = Admin.create(words.settings())) {
            for (String part : words.get("parts").split(",")) {
                switch (part) {
                    case "topics" -> topics(admin, words.get("topic"));
                    case "configs" -> configs(admin, words.get("topic"));
                    case "rights" -> AdminRights.acls(admin);
                    case "quotas" -> AdminRights.quotas(admin);
                    case "scram" -> AdminRights.scram(admin);
                    case "tokens" -> AdminRights.tokens(admin);
                    case "replicas" -> replicas(admin, words.get("topic"), words.numbers("brokers"));
                    case "records" -> records(admin, words.get("topic"));
                    case "groups" -> groups(admin, words.get("topic"), words.get("group"));
                    case "transactions" -> transactions(admin, words);
                    case "cluster" -> cluster(admin);
                    case "voters" -> voters(admin, words.get("voters"));
                    case "leaders" -> leaders(admin, words.get("topic"), words.numbers("brokers"));
                    case "share" -> AdminGroups.prepareShare(admin, words.get("group"));
                    case "newer groups" -> AdminGroups.describe(admin, words.get("group"), words.get("streams"));
                    case "newer groups' end" -> AdminGroups.remove(admin, words.get("group"), words.get("streams"), words.get("topic"));
                    case "removal" -> removal(admin, words.get("topic"), words.get("group"));
                    default -> throw new IllegalArgumentException(part);
                }
            }
        }
    }

    private static void topics(Admin admin, String topic) throws Exception {
        Map<String, String> settings = Map.of("retention.ms", "86400000", "cleanup.policy", "delete");
        List<NewTopic> wanted = List.of(new NewTopic(topic, 2, (short) 1).configs(settings),
            new NewTopic(topic + "-assigned", Map.of(0, List.of(1), 1, List.of(1))));
        done("create topics", admin.createTopics(wanted).all());
        refused("create topics again", admin.createTopics(wanted).all());
        done("create partitions", admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all());
        done("list topics", admin.listTopics().names());
        done("describe topics", admin.describeTopics(List.of(topic, topic + "-assigned")).allTopicNames());
    }

    private static void configs(Admin admin, String topic) throws Exception {
        ConfigResource ofTopic = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        ConfigResource ofGroup = new ConfigResource(ConfigResource.Type.GROUP, "orders-batch");
        ConfigResource ofMetrics = new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "lab-metrics");
        done("alter configs", admin.incrementalAlterConfigs(Map.of(
            ofTopic, List.of(set("max.message.bytes", "500000"), new AlterConfigOp(new ConfigEntry("retention.ms", ""), AlterConfigOp.OpType.DELETE),
                new AlterConfigOp(new ConfigEntry("cleanup.policy", "compact"), AlterConfigOp.OpType.APPEND)),
            ofGroup, List.of(set("consumer.session.timeout.ms", "46000")),
            ofMetrics, List.of(set("metrics", "org.apache.kafka.consumer."), set("interval.ms", "5000")))).all());
        done("describe configs", admin.describeConfigs(List.of(ofTopic, ofGroup, ofMetrics,
            new ConfigResource(ConfigResource.Type.BROKER, "1"))).all());
        done("list config resources", admin.listConfigResources().all());
    }

    private static AlterConfigOp set(String name, String value) {
        return new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
    }

    private static void replicas(Admin admin, String topic, List<Integer> brokers) throws Exception {
        TopicPartition first = new TopicPartition(topic, 0);
        int last = brokers.get(brokers.size() - 1);
        done("reassign", admin.alterPartitionReassignments(Map.of(first, Optional.of(new NewPartitionReassignment(brokers)))).all());
        done("list reassignments", admin.listPartitionReassignments().reassignments());
        refused("cancel reassignment", admin.alterPartitionReassignments(Map.of(new TopicPartition(topic, 1), Optional.empty())).all());
        done("elect leaders", admin.electLeaders(ElectionType.PREFERRED, Set.of(first)).partitions());
        done("elect all leaders", admin.electLeaders(ElectionType.PREFERRED, null).partitions());
        var directories = done("describe log dirs", admin.describeLogDirs(List.of(1)).allDescriptions());
        done("describe replica log dirs", admin.describeReplicaLogDirs(List.of(new TopicPartitionReplica(topic, 1, 1))).all());
        for (String directory : directories.get(1).keySet()) {
            TopicPartitionReplica replica = new TopicPartitionReplica(topic, 1, 1);
            done("alter replica log dirs", admin.alterReplicaLogDirs(Map.of(replica, directory)).all());
        }
        Lab.emit("{\"event\":\"reassigned\",\"to\":" + last + "}");
    }

    private static void records(Admin admin, String topic) throws Exception {
        TopicPartition first = new TopicPartition(topic, 0);
        Map<TopicPartition, OffsetSpec> latest = Map.of(first, OffsetSpec.latest());
        long end = done("latest offset", admin.listOffsets(latest).all()).get(first).offset();
        done("earliest offset", admin.listOffsets(Map.of(first, OffsetSpec.earliest())).all());
        done("offset by time", admin.listOffsets(Map.of(first, OffsetSpec.forTimestamp(0))).all());
        done("offset by greatest time", admin.listOffsets(Map.of(first, OffsetSpec.maxTimestamp())).all());
        done("delete records", admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(Math.min(2, end)))).all());
    }

    private static void groups(Admin admin, String topic, String group) throws Exception {
        TopicPartition first = new TopicPartition(topic, 0);
        TopicPartition second = new TopicPartition(topic, 1);
        done("list groups", admin.listGroups().all());
        done("describe groups", admin.describeConsumerGroups(List.of(group)).all());
        done("list group offsets", admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata());
        done("reset group offsets", admin.alterConsumerGroupOffsets(group,
            Map.of(first, new OffsetAndMetadata(2), second, new OffsetAndMetadata(0))).all());
        done("delete group offsets", admin.deleteConsumerGroupOffsets(group, Set.of(second)).all());
    }

    /** Leaves a transaction open, looks at it from all sides, and aborts it. */
    private static void transactions(Admin admin, Lab.Words words) throws Exception {
        var settings = words.settings();
        settings.put("transactional.id", "orders-import");
        TopicPartition partition = new TopicPartition(words.get("topic"), 2);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(partition.topic(), partition.partition(), "order", "half an order")).get();
            var state = done("describe producers", admin.describeProducers(List.of(partition)).all());
            var open = state.get(partition).activeProducers().get(0);
            done("list transactions", admin.listTransactions().all());
            done("describe transactions", admin.describeTransactions(List.of("orders-import")).all());
            done("abort transaction", admin.abortTransaction(new AbortTransactionSpec(partition, open.producerId(),
                (short) open.producerEpoch(), open.coordinatorEpoch().orElse(0))).all());
            done("fence producers", admin.fenceProducers(List.of("orders-import")).all());
        }
    }

    private static void cluster(Admin admin) throws Exception {
        done("describe cluster", admin.describeCluster().nodes());
        done("describe quorum", admin.describeMetadataQuorum().quorumInfo());
        done("describe features", admin.describeFeatures().featureMetadata());
        done("update features", admin.updateFeatures(
            Map.of("share.version", new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE)),
            new UpdateFeaturesOptions().validateOnly(true)).all());
        refused("unregister broker", admin.unregisterBroker(77).all());
    }

    /** Waits until voters=N,M,... make up the controllers' quorum, all of them known to the leader. */
    private static void voters(Admin admin, String wanted) throws Exception {
        Set<Integer> expected = Arrays.stream(wanted.split(",")).map(Integer::valueOf).collect(Collectors.toSet());
        Set<Integer> found;
        do {
            Lab.goesOn(200);
            var quorum = admin.describeMetadataQuorum().quorumInfo().get();
            found = quorum.voters().stream().map(QuorumInfo.ReplicaState::replicaId).collect(Collectors.toSet());
            Lab.emit("{\"event\":\"quorum\",\"leader\":" + quorum.leaderId() + ",\"epoch\":" + quorum.leaderEpoch() + ",\"voters\":" + found + "}");
        } while (!found.equals(expected));
    }

    /** Moves a partition to other brokers and back, and lets the preferred replicas lead again. */
    private static void leaders(Admin admin, String topic, List<Integer> brokers) throws Exception {
        TopicPartition first = new TopicPartition(topic, 0);
        done("reassign", admin.alterPartitionReassignments(Map.of(first, Optional.of(new NewPartitionReassignment(brokers)))).all());
        while (!done("list reassignments", admin.listPartitionReassignments().reassignments()).isEmpty()) {
            Lab.goesOn(100);
        }
        done("elect leaders", admin.electLeaders(ElectionType.PREFERRED, null).partitions());
    }

    private static void removal(Admin admin, String topic, String group) throws Exception {
        done("delete group", admin.deleteConsumerGroups(List.of(group)).all());
        refused("delete group again", admin.deleteConsumerGroups(List.of(group)).all());
        done("delete topics", admin.deleteTopics(List.of(topic + "-assigned")).all());
        refused("delete topic again", admin.deleteTopics(List.of(topic + "-assigned")).all());
    }
}
