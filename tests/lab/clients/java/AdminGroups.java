import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListStreamsGroupOffsetsSpec;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** An operator's work on groups of the newer kinds: share groups and streams groups. */
final class AdminGroups {
    private AdminGroups() { }

    /** A share group that has no offsets yet begins at the start of its topics. */
    static void prepareShare(Admin admin, String group) throws Exception {
        var entry = new ConfigEntry("share.auto.offset.reset", "earliest");
        AdminWork.done("share group config", admin.incrementalAlterConfigs(Map.of(
            new ConfigResource(ConfigResource.Type.GROUP, group), List.of(new AlterConfigOp(entry, AlterConfigOp.OpType.SET)))).all());
    }

    /** Looks at a share group and a streams group while they work. */
    static void describe(Admin admin, String share, String streams) throws Exception {
        AdminWork.done("list groups", admin.listGroups().all());
        AdminWork.done("describe share group", admin.describeShareGroups(List.of(share)).all());
        AdminWork.done("list share offsets", admin.listShareGroupOffsets(Map.of(share, new ListShareGroupOffsetsSpec())).all());
        AdminWork.done("describe streams group", admin.describeStreamsGroups(List.of(streams)).all());
        AdminWork.done("list streams offsets", admin.listStreamsGroupOffsets(Map.of(streams, new ListStreamsGroupOffsetsSpec())).all());
    }

    /** Sets a share group's start offset anew, then removes its offsets and the groups, which nobody uses any more. */
    static void remove(Admin admin, String share, String streams, String topic) throws Exception {
        AdminWork.done("alter share offsets", admin.alterShareGroupOffsets(share, Map.of(new TopicPartition(topic, 0), 0L)).all());
        AdminWork.done("delete share offsets", admin.deleteShareGroupOffsets(share, Set.of(topic)).all());
        AdminWork.done("delete share group", admin.deleteShareGroups(List.of(share)).all());
        AdminWork.done("delete streams group", admin.deleteStreamsGroups(List.of(streams)).all());
    }
}
