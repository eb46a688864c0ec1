"""What admin requests do, in words, for KAF309. In: operations of kafka_admin_changes. Out: a verb, what to do."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from wirewitness.analyser.base.words import printable


class AdminKind(NamedTuple):
    """One kind of change. verb: past tense, for `client x at y ... <names>`. harmful: others can lose by it."""

    verb: str
    next_step: str = "Nothing to do if this was intended; see who else changes the same."
    harmful: bool = False


_ASK = "Ask who runs this client whether it was intended."
_RESET = "kafka-consumer-groups --bootstrap-server BROKER"
_LOSS = f"{_ASK} Offsets of its groups now: {_RESET} --describe --group GROUP."
_SHARE = f"{_ASK} Offsets of its groups now: kafka-share-groups --bootstrap-server BROKER --describe --group GROUP."
_CUT = (
    f"{_ASK} The records are gone for good. A group that had not read them begins at the first one left: "
    f"{_RESET} --group GROUP --topic TOPIC --reset-offsets --to-earliest --execute."
)
_MOST_COMMANDS = 4
_TOPIC = (
    "Ask who runs this client whether it was intended; take the right to delete (kafka-acls.sh) from who needs none."
)

ADMIN_KINDS: dict[str, AdminKind] = {
    "CreateTopics": AdminKind("made topics"),
    "DeleteTopics": AdminKind("deleted topics", _TOPIC, True),
    "DeleteRecords": AdminKind("deleted records of", _CUT, True),
    "CreatePartitions": AdminKind(
        "added partitions to",
        "Consumers with auto.offset.reset=latest skip what is written to a new partition before they find it; keys go "
        "to other partitions than before.",
    ),
    "DeleteGroups": AdminKind("deleted groups", _LOSS, True),
    "OffsetDelete": AdminKind("deleted stored offsets of", _LOSS, True),
    "OffsetReset": AdminKind("set stored offsets of", _LOSS, True),
    "AlterShareGroupOffsets": AdminKind("set start offsets of share groups", _SHARE, True),
    "DeleteShareGroupOffsets": AdminKind("deleted start offsets of share groups", _SHARE, True),
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


class Stored(NamedTuple):
    """Where a group stood before somebody moved or deleted its offset."""

    group: str
    topic: str
    partition: int
    offset: int


def put_back_text(before: Sequence[Stored]) -> str:
    """How to set the offsets that were there; the group must have no members then. Names are quoted for a shell."""
    commands = [
        f"{_RESET} --group {_quoted(one.group)} --topic {_quoted(f'{one.topic}:{one.partition}')} --reset-offsets "
        f"--to-offset {one.offset} --execute"
        for one in before[:_MOST_COMMANDS]
    ]
    more = f" (and {len(before) - _MOST_COMMANDS} more partitions)" if len(before) > _MOST_COMMANDS else ""
    return f"{_ASK} To go on where the group was, stop it and run: {'; '.join(commands)}{more}."


def _quoted(name: str) -> str:
    return shlex.quote(printable(name))
