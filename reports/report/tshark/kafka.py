"""Kafka beside tshark: what is compared, how tshark's trees are read, and what it cannot do."""

from __future__ import annotations

import re
from typing import Any

from wirewitness.dissectors.kafka.schema.api_keys import api_name
from wirewitness.reports.report.tshark.case import MISSING, Case, Limit, remarked
from wirewitness.reports.report.tshark.compared import Compared, Row
from wirewitness.reports.report.tshark.message import HEAD, Theirs, partition_order
from wirewitness.reports.report.tshark.trees import Packet, Pairs, leaves, made, remarks_of, text_of

# Kafka messages whose topics and partitions are rows of ours, with the field that holds their offsets.
_WITH_PARTITIONS = {
    ("OffsetCommit", "request"): "kafka.offset",
    ("OffsetCommit", "response"): None,
    ("TxnOffsetCommit", "request"): "kafka.offset",
    ("TxnOffsetCommit", "response"): None,
    ("OffsetFetch", "response"): "kafka.offset",
    ("Produce", "request"): None,
    ("Produce", "response"): None,
    ("Fetch", "response"): None,
}
_KNOWN_VERSIONS = re.compile(
    r"Unsupported (?P<name>.+) version\.(?: Supports v(?P<lowest>\d+)(?:-(?P<highest>\d+))?\.)?"
)
_UNKNOWN_KEY = re.compile(r"(?:Unknown )?(-?\d+) API key")
# (API, lowest, highest version) that it knows and reads wrongly.
_BLOBS = (("JoinGroup", 0, 5), ("SyncGroup", 0, 3), ("SaslAuthenticate", 0, 1))
_NULL_ARRAYS = (("ElectLeaders", 2, 2), ("ListPartitionReassignments", 0, 0))
_MESSAGE_SETS = (("Produce", 0, 2), ("Fetch", 0, 3))
_FIRST_VERSIONS = (
    ("CreateDelegationToken", 0, 0),
    ("RenewDelegationToken", 0, 0),
    ("ExpireDelegationToken", 0, 0),
    ("WriteTxnMarkers", 0, 0),
    ("DeleteAcls", 0, 0),
)

# Topics and partitions of an exchange: those of the request, and those of the response where these are others.
_PARTITIONS = """
    partitions as (
        select exchange_id, any_value(group_id) as group_id,
               list(distinct [topic, partition, committed_offset]) as asked,
               list(distinct [topic, partition, null]) as answered
        from (select exchange_id, group_id, topic, partition::varchar as partition,
                     committed_offset::varchar as committed_offset from kafka_offset_commits) group by exchange_id
        union all
        select exchange_id, any_value(group_id), null,
               list(distinct [topic, partition::varchar, committed_offset::varchar])
        from kafka_offset_fetches group by exchange_id
        union all
        select exchange_id, null, list(distinct [topic, partition::varchar, null]),
               list(distinct [topic, partition::varchar, null])
        from kafka_produce_batches group by exchange_id
        union all
        select exchange_id, null, null, list(distinct [topic, partition::varchar, null])
        from kafka_fetch_partitions where error_code is not null group by exchange_id
        union all
        select exchange_id, any_value(group_id), null, null
        from kafka_group_events where event <> 'describe' group by exchange_id)"""


def _read(packet: Packet, tree: Pairs) -> Theirs | None:
    head = dict(tree)
    if "kafka.len" not in head:
        return None
    number, length = int(head.get("kafka.correlation_id", 0)), int(head["kafka.len"]) + 4
    asked, answered = head.get("kafka.request_key"), head.get("kafka.response_key")
    values: dict[str, Any] = {"number": number, "length_bytes": length}
    key = asked if asked is not None else answered
    operation = role = version = None
    remarks = remarks_of(tree)
    if key is not None:
        operation, role = api_name(int(key)), "request" if asked is not None else "response"
        version = head.get("kafka.api_version", head.get("kafka.response.version"))
        values |= {"operation": operation, "version": version}
        if role == "request":
            values["client_id"] = text_of(head.get("kafka.client_id"))
        values |= _body(operation, role, tree)
    if "kafka.request_frame" in head:
        values["request"] = int(head["kafka.request_frame"])
    return made(
        packet,
        "kafka",
        length,
        number,
        (operation, role, version),
        values,
        tree,
        too_new=_too_new(operation, version, remarks),
    )


def _body(operation: str, role: str, tree: Pairs) -> dict[str, Any]:
    found = list(leaves(tree))
    values: dict[str, Any] = {}
    if role == "request":
        groups = [value for name, value in found if name == "kafka.consumer_group"]
        if len(groups) == 1:
            values["group_id"] = groups[0]
    else:
        codes = [int(value) for name, value in found if name == "kafka.error"]
        if codes:
            values["error_code"] = next((code for code in codes if code), 0)
    if (operation, role) in _WITH_PARTITIONS:
        values["partitions"] = _partitions(found, _WITH_PARTITIONS[operation, role])
    return values


def _partitions(fields: list[tuple[str, str]], offset_name: str | None) -> list[tuple[Any, ...]]:
    """(topic, partition) or (topic, partition, offset) of every partition, sorted."""
    found: list[list[Any]] = []
    topic: str | None = None
    for name, value in fields:
        if name == "kafka.topic_name":
            topic = value
        elif name == "kafka.partition_id":
            found.append([topic, int(value)])
        elif offset_name is not None and name == offset_name and found and len(found[-1]) == 2:
            found[-1].append(int(value))
    return sorted({tuple(one) for one in found}, key=partition_order)


def _too_new(operation: str | None, version: str | None, remarks: tuple[str, ...]) -> bool:
    """Whether a remark says so of this message; in ApiVersions there are such on all versions that a broker offers."""
    for remark in remarks:
        known = _KNOWN_VERSIONS.fullmatch(remark)
        if known and operation != "ApiVersions":
            return True
        if known and known["name"] == operation:
            lowest, highest = known["lowest"], known["highest"] or known["lowest"]
            if lowest is None or not int(lowest) <= int(version or -1) <= int(highest):
                return True
        key = _UNKNOWN_KEY.fullmatch(remark)
        if key and api_name(int(key[1])) == operation:
            return True
    return False


def _values(row: Row) -> dict[str, Any]:
    asks = row["role"] == "request"
    values: dict[str, Any] = {"operation": row["operation"], "version": row["version"]}
    values["partitions"] = _sorted(row["asked"] if asks else row["answered"])
    if asks:
        values |= {"client_id": row["client_id"], "group_id": row["group_id"]}
    elif row["answers"]:
        values["request"] = row["request_packet"]
        values["error_code"] = row["error_code"] if row["error_known"] else None
    return values


def _sorted(rows: list[list[str | None]] | None) -> list[tuple[Any, ...]] | None:
    """Rows of topic, partition and perhaps offset, which DuckDB holds as text in one list, as tshark's are."""
    if rows is None:
        return None
    found = [
        (topic, int(partition or 0)) if offset is None else (topic, int(partition or 0), int(offset))
        for topic, partition, offset in rows
    ]
    return sorted(found, key=partition_order)


def _newer(case: Case) -> bool:
    return case.theirs is not None and case.theirs.too_new and not case.differing & HEAD


def _gave_up_on(case: Case, kinds: tuple[tuple[str, int, int], ...]) -> bool:
    """The message is one of these and tshark says that it could not read it; its head it has read."""
    ours, theirs = case.ours, case.theirs
    if ours is None or theirs is None or case.differing & HEAD or not (ours.version or "").isdecimal():
        return False
    return theirs.gave_up and any(
        ours.operation == name and low <= int(ours.version or 0) <= high for name, low, high in kinds
    )


_LIMITS = (
    Limit(
        "sasl_token", "kafka", "tshark",
        "a bare token after SaslHandshake 0 has no header; tshark takes its bytes for one",
        "4.0.17", "packet-kafka.c; Kafka protocol guide, SASL authentication sequence",
        lambda case: bool(case.ours and case.ours.operation == "SaslToken"),
    ),
    Limit(
        "id_again", "kafka", "tshark",
        "the correlation id was used before on this connection, as re-authentication does; it takes the first request "
        "with it, which has been answered",
        "4.0.17", "packet-kafka.c, dissect_kafka; KIP-368", lambda case: case.answered and "request" in case.differing,
    ),
    Limit(
        "api_version", "kafka", "tshark",
        "newer than the versions it knows (as its own remark says); it goes on with the layout of one it knows",
        "4.0.17: Produce 8, Fetch 11, OffsetCommit 8", "packet-kafka.c, kafka_apis, kafka_check_supported_api_version",
        _newer,
    ),
    Limit(
        "request_forgotten", "kafka", "tshark",
        "it gave up on the request, so it cannot tell what the response is",
        "4.0.17", "packet-kafka.c, dissect_kafka: the request is kept after its dissection",
        lambda case: case.forgotten and remarked(case, MISSING) and not case.differing,
    ),
    Limit(
        "response_first", "kafka", "tshark",
        "packets came out of order: it dissects the response before the gap in the request is closed",
        "4.0.17", "packet-tcp.c, preference tcp.reassemble_out_of_order",
        lambda case: bool(case.ours and case.ours.flow.disorder)
        and remarked(case, MISSING) and case.differing <= {"packet"},
    ),
    Limit(
        "blobs", "kafka", "tshark",
        "it reads the 4-byte length of bytes (members' metadata and assignments, SASL tokens) as a 2-byte one",
        "4.0.17", "packet-kafka.c against JoinGroupRequest.json, SyncGroupRequest.json, SaslAuthenticateRequest.json",
        lambda case: _gave_up_on(case, _BLOBS),
    ),
    Limit(
        "null_array", "kafka", "tshark",
        "a null array, which stands for all, it does not read in a compact array",
        "4.0.17", "packet-kafka.c; KIP-482", lambda case: _gave_up_on(case, _NULL_ARRAYS),
    ),
    Limit(
        "message_set", "kafka", "tshark",
        "it loses its way in message sets of formats 0 and 1, compressed ones above all",
        "4.0.17", "packet-kafka.c, dissect_kafka_message_set", lambda case: _gave_up_on(case, _MESSAGE_SETS),
    ),
    Limit(
        "first_versions", "kafka", "tshark",
        "it reads the first versions of some administrative APIs wrongly",
        "4.0.17", "packet-kafka.c against the message definitions of Kafka",
        lambda case: _gave_up_on(case, _FIRST_VERSIONS),
    ),
)  # fmt: skip

KAFKA = Compared(
    name="kafka",
    layer="kafka",
    read=_read,
    tables=(
        "kafka_offset_commits",
        "kafka_offset_fetches",
        "kafka_fetch_partitions",
        "kafka_produce_batches",
        "kafka_group_events",
    ),
    columns=("p.group_id", "p.asked", "p.answered"),
    subqueries=(_PARTITIONS,),
    joins="left join partitions p on p.exchange_id = coalesce(r.exchange_id, a.exchange_id)",
    values=_values,
    request_is_packet=True,
    hidden=(
        r"kafka\.(message_(key|value)|header_(key|value)|config_value|sasl_authentication|token_hmac"
        r"|tagged_field_\w+|truncated_content|protocol_metadata|member_(metadata|assignment)|metadata)"
    ),
    limits=_LIMITS,
)
