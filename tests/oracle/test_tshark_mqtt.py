"""tshark on published captures and on samples: the same packets, types, identifiers and topics.

tshark prints one line for each packet and joins the values of several messages.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

import analyser
from tests.conftest import ROOT, require_program, shared_capture

SAMPLES = sorted(path.name for path in (ROOT / "sample_pcaps").glob("mqtt_*.pcapng"))
PUBLISHED = (
    "mqtt311_invalid_qos.pcap",
    "mqtt31_midstream.pcap",
    "mqtt31_unsub_qos1.pcap",
    "mqtt5_pub_qos2_ipv6.pcap",
    "mqtt_one_packet_multi_publish.pcap",
    "mqtt_roundtrip.pcap",
)
TYPES = (
    "Type 0", "CONNECT", "CONNACK", "PUBLISH", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP", "SUBSCRIBE", "SUBACK",
    "UNSUBSCRIBE", "UNSUBACK", "PINGREQ", "PINGRESP", "DISCONNECT", "AUTH",
)  # fmt: skip

# (packet, ...) -> how often: of types, identifiers, topics and filters.
Seen = tuple[Counter[tuple[int, str]], Counter[tuple[int, int]], Counter[tuple[int, str]]]


def by_tshark(tshark: str, capture: Path) -> Seen:
    """What tshark says, retransmissions left out."""
    fields = ("frame.number", "mqtt.msgtype", "mqtt.msgid", "mqtt.topic")
    command = [
        tshark,
        "-r",
        str(capture),
        "-Y",
        "mqtt && !tcp.analysis.retransmission",
        "-T",
        "fields",
        "-E",
        "aggregator=|",
    ]
    done = subprocess.run(
        [*command, *(part for name in fields for part in ("-e", name))], capture_output=True, check=True
    )
    types: Counter[tuple[int, str]] = Counter()
    identifiers: Counter[tuple[int, int]] = Counter()
    topics: Counter[tuple[int, str]] = Counter()
    for line in done.stdout.decode().splitlines():
        number, kinds, ids, names = (cell.split("|") if cell else [] for cell in line.split("\t"))
        packet = int(number[0])
        types.update((packet, TYPES[int(kind)]) for kind in kinds)
        identifiers.update((packet, int(one)) for one in ids)
        topics.update((packet, name) for name in names)
    return types, identifiers, topics


def by_us(capture: Path) -> Seen:
    """What our tables say of flows without a carrier."""
    with analyser.read(
        capture, tables=["messages", "mqtt_publishes", "mqtt_subscriptions", "mqtt_connections"]
    ) as found:
        messages = found.arrow(
            "messages", columns=["protocol", "packet_last", "operation", "correlation_id"]
        ).to_pylist()
        publishes = found.arrow("mqtt_publishes", columns=["packet", "topic", "topic_alias", "flow_id"]).to_pylist()
        filters = found.arrow("mqtt_subscriptions", columns=["request_packet", "topic_filter"]).to_pylist()
    messages = [row for row in messages if row["protocol"] == "mqtt"]
    types = Counter((row["packet_last"], row["operation"]) for row in messages)
    identifiers = Counter(
        (row["packet_last"], row["correlation_id"]) for row in messages if row["correlation_id"] is not None
    )
    topics = Counter((row["packet"], row["topic"]) for row in publishes if row["topic"])
    topics.update((row["request_packet"], row["topic_filter"]) for row in filters)
    return types, identifiers, topics


def compare(tshark: str, capture: Path, packets: set[int] | None = None) -> None:
    theirs, ours = by_tshark(tshark, capture), by_us(capture)
    for what, their_values, our_values in zip(("types", "identifiers"), theirs, ours, strict=False):
        assert their_values, what
        assert our_values == their_values, what
    # tshark does not know what an alias stands for, and prints an empty topic or none there.
    missing = theirs[2] - ours[2]
    assert not [name for _, name in missing if name], missing


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_captures(name: str) -> None:
    compare(require_program("tshark"), shared_capture(name))


def test_broken_packets() -> None:
    """Beside what tshark shows: the header that has no end, and bytes that are no text as such."""
    capture = ROOT / "sample_pcaps" / "mqtt_faults.pcapng"
    theirs, ours = by_tshark(require_program("tshark"), capture), by_us(capture)
    assert not theirs[0] - ours[0]
    assert [name for _, name in ours[0] - theirs[0]] == ["PUBLISH"]
    assert ours[1] == theirs[1]
    assert [name.replace("\\xff\\xfe", "\ufffd" * 2) for _, name in ours[2] - theirs[2]] == [
        n for _, n in theirs[2] - ours[2]
    ]


# Inside WebSocket tshark sees no MQTT.
@pytest.mark.parametrize(
    "name", [name for name in SAMPLES if name not in ("mqtt_websocket.pcapng", "mqtt_faults.pcapng")]
)
def test_samples(name: str) -> None:
    compare(require_program("tshark"), ROOT / "sample_pcaps" / name)
