"""How Kafka's clients, groups, partitions and admin requests are named, in sentences and in a finding's numbers.

In: ids from the wire, each None where it is not known, or rows of a rule's frames that hold them; operations of
kafka_admin_changes. Out: words, parts of a finding's numbers, what to do.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from wirewitness.analyser.base.addresses import who_is
from wirewitness.analyser.base.words import names_text, printable
from wirewitness.analyser.engine.rules.frame_rows import Row

# Longer names are cut in sentences; a member id is a client id and a UUID.
MAX_NAME = 160
MAX_TITLE = 90
# What a name that is cut in a title keeps of its end: the number of a partition or of a process.
_TITLE_TAIL = 6
_UUID = re.compile(r"[0-9a-fA-F]{8}(?=(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})")
_MAX_MEMBER = 20
# So many partitions or clients are listed in the numbers of one finding.
MAX_LISTED = 100


def who_text(address: str | None, client_id: str | None, member_id: str | None = None) -> str:
    """`client shop-1 at 10.0.0.3`, and `(member c27f0a12)` where it is known."""
    member = f"member {member_name(member_id)}" if member_id else ""
    return who_is(client_id, address, detail=member, most=MAX_NAME)


def member_name(member_id: str) -> str:
    """A member id in a sentence: of one with a UUID the first 8 digits of that. The numbers have it whole."""
    uuid = _UUID.search(member_id)
    return uuid[0] if uuid else printable(member_id, _MAX_MEMBER)


def title_text(words: str, *names: str) -> str:
    """The words of a title with a name for each `{}`, the longest ones cut to fit in MAX_TITLE characters."""
    room = most = MAX_TITLE - len(words) + 2 * len(names)
    plain = [printable(name, MAX_NAME) for name in names]
    for left, length in zip(range(len(plain), 0, -1), sorted(map(len, plain)), strict=True):
        most = max(room // left, 2 * _TITLE_TAIL)
        if length > most:
            break
        room -= length
    return words.format(*(_cut(name, most) for name in plain))


def _cut(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1 - _TITLE_TAIL]}…{name[-_TITLE_TAIL:]}"


def short_who(address: str | None, client_id: str | None) -> str:
    """A client in a title: its client id, else its address."""
    return client_id or address or "a client"


def short_clients(clients: Iterable[tuple[str | None, str | None]]) -> list[str]:
    """Clients in a title, (address, client id) each; with the addresses too where client ids are not enough."""
    told = dict.fromkeys(clients)
    short = [short_who(*client) for client in told]
    if len(set(short)) == len(short):
        return short
    return [
        f"{client_id} ({address})" if client_id and address else short_who(address, client_id)
        for address, client_id in told
    ]


def first_text(names: Sequence[str]) -> str:
    """`payments-0`, or `payments-0 and 3 more`: what a title names of several; at least one."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more"


def client_text(row: Mapping[str, Any]) -> str:
    """The client of a row, without its member id."""
    return who_text(row["client_address"], row["client_id"])


def who_numbers(address: str | None, client_id: str | None, member_id: str | None = None) -> Row:
    """An element of `clients` in a finding's numbers."""
    return {"address": address, "client_id": client_id, "member_id": member_id}


def client_numbers(row: Mapping[str, Any], **more: Any) -> Row:
    """The same for the client of a row that knows no members."""
    return {"address": row["client_address"], "client_id": row["client_id"], **more}


def group_text(group_id: str | None) -> str:
    """`Group billing`, to begin a sentence."""
    return f"Group {printable(group_id, MAX_NAME) if group_id else '?'}"


def error_text(code: int | None, name: str | None) -> str:
    """`45 OUT_OF_ORDER_SEQUENCE_NUMBER`: as much of it as is known."""
    return " ".join(str(part) for part in (code, name) if part is not None) or "?"


def partition_text(topic: str | None, partition: int) -> str:
    """`orders-3`: topic and partition as Kafka's own tools write them."""
    return f"{printable(topic, MAX_NAME) if topic else '(unknown topic)'}-{partition}"


def place(row: Mapping[str, Any]) -> str:
    """The partition of a row."""
    return partition_text(row["topic"], row["partition"])


def places_text(rows: Iterable[Mapping[str, Any]], most: int = 5) -> str:
    """Their partitions, each once; what is too much is counted."""
    return names_text(sorted({place(row) for row in rows}), most)


def partitions_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """`partitions` of a finding's numbers."""
    return partition_names((row["topic"], row["partition"]) for row in rows)


def partition_names(places: Iterable[tuple[str | None, int]]) -> list[str]:
    """The same of topics and partitions, each once; one whose topic is not known has no name to be found by."""
    return sorted({f"{topic}-{partition}" for topic, partition in places if topic is not None})[:MAX_LISTED]


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
    "CreateTopics": AdminKind("created topics"),
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
    "CreateDelegationToken": AdminKind("created delegation tokens"),
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
