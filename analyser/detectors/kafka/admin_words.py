"""What admin requests do, in words, for KAF309. In: an operation of kafka_admin_changes. Out: a verb, what to do."""

from __future__ import annotations

from typing import NamedTuple


class AdminKind(NamedTuple):
    """One kind of change. verb: past tense, for `client x at y ... <names>`. harmful: others can lose by it."""

    verb: str
    next_step: str = "Nothing to do if this was intended; see who else changes the same."
    harmful: bool = False


_LOSS = (
    "Ask who runs this client whether it was intended; KAF114, KAF121 and KAF316 say what groups read again or skipped."
)
_TOPIC = (
    "Ask who runs this client whether it was intended; take the right to delete (kafka-acls.sh) from who needs none."
)

ADMIN_KINDS: dict[str, AdminKind] = {
    "CreateTopics": AdminKind("made topics"),
    "DeleteTopics": AdminKind("deleted topics", _TOPIC, True),
    "DeleteRecords": AdminKind("deleted records of", _LOSS, True),
    "CreatePartitions": AdminKind(
        "added partitions to",
        "Consumers with auto.offset.reset=latest skip what is written to a new partition before they find it; keys go "
        "to other partitions than before.",
    ),
    "DeleteGroups": AdminKind("deleted groups", _LOSS, True),
    "OffsetDelete": AdminKind("deleted stored offsets of", _LOSS, True),
    "OffsetReset": AdminKind("set stored offsets of", _LOSS, True),
    "AlterShareGroupOffsets": AdminKind("set start offsets of share groups", _LOSS, True),
    "DeleteShareGroupOffsets": AdminKind("deleted start offsets of share groups", _LOSS, True),
    "CreateAcls": AdminKind("added ACLs for"),
    "DeleteAcls": AdminKind(
        "removed ACLs for", "Look whether clients are refused since then (29, 30, 31, 53): KAF205, KAF118."
    ),
    "AlterConfigs": AdminKind("changed settings of"),
    "IncrementalAlterConfigs": AdminKind("changed settings of"),
    "AlterClientQuotas": AdminKind("changed quotas of", "Look whether clients are throttled since then (KAF304)."),
    "AlterUserScramCredentials": AdminKind(
        "changed credentials of", "Look whether logins are refused since then (KAF312)."
    ),
    "AlterPartitionReassignments": AdminKind("moved replicas of"),
    "AlterReplicaLogDirs": AdminKind("moved log folders of"),
    "ElectLeaders": AdminKind("elected leaders of"),
    "CreateDelegationToken": AdminKind("made delegation tokens"),
    "RenewDelegationToken": AdminKind("renewed delegation tokens"),
    "ExpireDelegationToken": AdminKind("ended delegation tokens"),
    "UpdateFeatures": AdminKind("changed features"),
    "UnregisterBroker": AdminKind("unregistered brokers"),
    "AddRaftVoter": AdminKind("added controllers"),
    "RemoveRaftVoter": AdminKind("removed controllers"),
}
OTHER_KIND = AdminKind("changed")
