"""Why the two sides may differ although we are right: what tshark cannot do, and what both do by other rules.

In: a message of both sides or of one, and what differs. Out: the first reason that applies, or None. A limit is only
believed where tshark's own output shows it, so one that a later version lifts stops applying by itself; `seen` says
with which version it was seen, `source` where it can be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from analyser.crosscheck.message import HEAD, Ours, Theirs


class Case(NamedTuple):
    """One comparison. differing: names of values that differ.

    forgotten: tshark gave up on the request of this response. gap, midstream, encrypted: of the flow; shared: several
    protocols are spoken on its port. started: both sides have had the same message of this stream before. answered: the
    request that tshark pairs this response with has had its response already. damaged: tshark stopped at a damage of
    the file before the packet of this message. continued: the connection began before the file.
    """

    ours: Ours | None
    theirs: Theirs | None
    differing: frozenset[str]
    forgotten: bool = False
    gap: bool = False
    midstream: bool = False
    encrypted: bool = False
    shared: bool = False
    started: bool = True
    answered: bool = False
    damaged: bool = False
    continued: bool = False


@dataclass(frozen=True, slots=True)
class Limit:
    """A reason. whose: "tshark" for what it cannot do, "both" for rules on which nobody is wrong, or "capture"."""

    code: str
    protocol: str
    whose: str
    text: str
    seen: str
    source: str
    applies: Callable[[Case], bool]


_MISSING = "Request missing"
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


def reason(case: Case) -> Limit | None:
    """The first limit that explains the case."""
    return next((limit for limit in LIMITS if limit.protocol in {"", _protocol(case)} and limit.applies(case)), None)


def _protocol(case: Case) -> str:
    message = case.ours or case.theirs
    return message.key.protocol if message else ""


def _remarked(case: Case, text: str) -> bool:
    return case.theirs is not None and text in case.theirs.remarks


def _too_new(case: Case) -> bool:
    return case.theirs is not None and case.theirs.too_new and not case.differing & HEAD


def _gave_up_on(case: Case, kinds: tuple[tuple[str, int, int], ...]) -> bool:
    """The message is one of these and tshark says that it could not read it; its head it has read."""
    ours, theirs = case.ours, case.theirs
    if ours is None or theirs is None or case.differing & HEAD or not (ours.version or "").isdecimal():
        return False
    return theirs.gave_up and any(
        ours.operation == name and low <= int(ours.version or 0) <= high for name, low, high in kinds
    )


def _only_ours(case: Case) -> bool:
    return case.ours is not None and case.theirs is None


def _checksum(case: Case) -> bool:
    marks = ("Malformed", "Unknown section type", "Bogus Mongo message section size", "Unknown Data")
    remarks = case.theirs.remarks if case.theirs else ()
    gave_up = case.theirs is not None and (case.theirs.malformed or any(r.startswith(marks) for r in remarks))
    return gave_up and bool(case.theirs and case.theirs.values.get("checksum_present")) and not case.differing & HEAD


def _late(case: Case) -> bool:
    ours, theirs = case.ours, case.theirs
    late = ours is not None and theirs is not None and ours.flow.disorder and theirs.packet > ours.packet
    return late and case.differing <= {"packet"}


def _apart(case: Case) -> bool:
    """The sides do not have the same bytes for a message."""
    return case.ours is None or case.theirs is None or "length_bytes" in case.differing


def _in_earlier_file(case: Case) -> bool:
    """The request, the beginning of the message, or the CONNECT that says how PUBLISH is read, may lie there."""
    if not case.continued:
        return False
    lacks_request = _remarked(case, _MISSING) and not case.differing & HEAD - {"request"}
    lacks_version = case.ours is not None and _protocol(case) == "mqtt" and case.ours.version == "5.0"
    return lacks_request or lacks_version or (not case.started and _apart(case))


def seen_with() -> frozenset[str]:
    """Versions of tshark with which reasons were seen."""
    return frozenset(limit.seen.partition(":")[0] for limit in LIMITS)


def _not_text(case: Case) -> bool:
    """tshark shows a byte that is no UTF-8 as U+FFFD, we as \\xNN."""
    if case.ours is None or case.theirs is None or not case.differing <= {"topic", "filters", "client_id"}:
        return False
    pairs = [(case.ours.values[name], case.theirs.values[name]) for name in case.differing]
    shown = [re.sub(r"(\\x[0-9a-f]{2})+", "\ufffd", str(mine)) for mine, _ in pairs]
    return bool(pairs) and shown == [re.sub("\ufffd+", "\ufffd", str(other)) for _, other in pairs]


LIMITS: tuple[Limit, ...] = (
    Limit(
        "late_packet", "", "both",
        "packets came out of order: we name the packet with the message's last bytes, tshark the one that closes the "
        "hole before it",
        "4.0.17", "packet-tcp.c, preference tcp.reassemble_out_of_order", _late,
    ),
    Limit(
        "cut_message", "", "capture",
        "a gap or the end of the capture cuts the message: its beginning is a row of ours, tshark shows whole ones",
        "4.0.17", "packet-tcp.c, tcp_dissect_pdus", lambda case: _only_ours(case) and bool(case.ours and case.ours.cut),
    ),
    Limit(
        "damaged_file", "", "tshark",
        "the file is damaged before this message: it stops there, we go on with the next whole packet",
        "4.0.17", "wiretap: libpcap.c, pcapng.c", lambda case: _only_ours(case) and case.damaged,
    ),
    Limit(
        "tls_on_port", "", "both",
        "TLS is spoken on this port; told to decode the port, tshark takes encrypted bytes for messages",
        "4.0.17", "option -d", lambda case: case.ours is None and case.encrypted,
    ),
    Limit(
        "shared_port", "", "tshark",
        "several protocols are spoken on this port, by other hosts perhaps; it can be told one for a port",
        "4.0.17", "option -d", lambda case: case.shared and (case.ours is None or case.theirs is None),
    ),
    Limit(
        "websocket", "mqtt", "tshark",
        "MQTT inside WebSocket: no dissector of it is registered for WebSocket",
        "4.0.17", "packet-mqtt.c, proto_reg_handoff_mqtt",
        lambda case: _only_ours(case) and bool(case.ours and case.ours.flow.carrier == "websocket"),
    ),
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
        _too_new,
    ),
    Limit(
        "request_forgotten", "kafka", "tshark",
        "it gave up on the request, so it cannot tell what the response is",
        "4.0.17", "packet-kafka.c, dissect_kafka: the request is kept after its dissection",
        lambda case: case.forgotten and _remarked(case, _MISSING) and not case.differing,
    ),
    Limit(
        "response_first", "kafka", "tshark",
        "packets came out of order: it dissects the response before the hole in the request is closed",
        "4.0.17", "packet-tcp.c, preference tcp.reassemble_out_of_order",
        lambda case: bool(case.ours and case.ours.flow.disorder)
        and _remarked(case, _MISSING) and case.differing <= {"packet"},
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
    Limit(
        "op_msg_checksum", "mongo", "tshark",
        "it takes the checksum behind an OP_MSG for another section",
        "4.0.17", "packet-mongo.c, dissect_mongo_op_msg; later versions stop before the checksum", _checksum,
    ),
    Limit(
        "zstd", "mongo", "tshark",
        "it does not decompress this; what the message holds is not seen",
        "4.0.17: zstd", "packet-mongo.c, dissect_mongo_op_compressed; later versions know zstd",
        lambda case: bool(
            case.theirs and any(r.startswith("Unsupported compression") for r in case.theirs.remarks)
        ) and not case.differing,
    ),
    Limit(
        "endless_length", "mqtt", "tshark",
        "the remaining length has no end within 4 bytes: a malformed packet, which ends the connection; it shows none",
        "4.0.17", "packet-mqtt.c, get_mqtt_pdu_len; MQTT 3.1.1, 2.2.3; MQTT 5.0, 1.5.5",
        lambda case: _only_ours(case) and bool(case.ours and case.ours.error and case.ours.values["length_bytes"] < 2),
    ),
    Limit(
        "not_utf8", "mqtt", "both",
        "bytes that are no UTF-8 are shown in another way",
        "4.0.17", "MQTT 5.0, 1.5.4", _not_text,
    ),
    Limit(
        "earlier_file", "", "both",
        "the connection goes on from an earlier file: tshark reads each file by itself, we read them as one capture; "
        "mergecap makes one file of them",
        "4.0.17", "packet-tcp.c, packet-kafka.c: what is remembered of a connection", _in_earlier_file,
    ),
    Limit(
        "after_gap", "", "capture",
        "bytes of the flow are missing: tshark waits for them, or takes any packet after them for the start of a "
        "message; we go on with what must be one",
        "4.0.17", "packet-tcp.c",
        lambda case: case.gap and _apart(case),
    ),
    Limit(
        "before_capture", "", "capture",
        "the connection began before the capture: tshark takes its first packet for the start of a message, we look "
        "for one",
        "4.0.17", "packet-tcp.c", lambda case: case.midstream and not case.started and _apart(case),
    ),
)  # fmt: skip
