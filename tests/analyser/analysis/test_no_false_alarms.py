"""A healthy capture stays healthy when it is damaged: no rule calls a fault what the capture merely lacks.

The sample of Kafka shows classic and KIP-848 groups of several clients with rebalances, restarts and transactions, that
of MongoDB two drivers with cursors and authentication, that of MQTT all versions and QoS by four libraries. They are
cut, thinned, mixed up and made one-sided; only remarks on the capture itself may come above info.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
import zstandard

from tests.conftest import KNOWN_INCIDENTS, SAMPLES
from tests.support.packets import Captured
from tests.support.shares import every, pairs, share
from tests.support.wire import decode, duplicated, lossy, packets_of, reordered, thinned
from wirewitness.analyser.analysis.all_rules import RULES, tables_needed
from wirewitness.analyser.analysis.needed import needed_tables
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.engine.rules.running import run
from wirewitness.analyser.inputs import analysis_of
from wirewitness.dissectors.registry import PROTOCOLS

BROKER_PORT, MONGO_PORT, MQTT_PORT = 9092, 27017, 1883
PARTS = 12

Damage = Callable[[Sequence[Captured]], Sequence[Captured]]


@cache
def sample(name: str) -> tuple[Captured, ...]:
    """The packets of a sample, or of an incident beside the repository."""
    known = [*KNOWN_INCIDENTS.glob(f"{name}.pcap*.zst")]
    if not known:
        return tuple(packets_of(SAMPLES / f"{name}.pcapng"))
    with NamedTemporaryFile() as file, zstandard.open(known[0], "rb") as packed:
        file.write(packed.read())
        file.flush()
        return tuple(packets_of(Path(file.name)))


def alarms(packets: Sequence[Captured], protocol: str) -> list[tuple[str, str, str]]:
    """Findings above info on TCP and the protocol; those of the others have no rows here to be wrong about."""
    codes = [code for code in RULES if code[:3] in ("TCP", protocol)]
    tables = needed_tables(sorted(tables_needed(codes)))
    with analysis_of(decode(packets, tables), tables, ReadOptions(), PROTOCOLS.values()) as analysis:
        found = run(analysis.connection, [RULES[code] for code in codes])
    return [(one.code, one.severity, one.sentence) for one in found if one.severity != "info"]


def from_broker(packet: Captured, port: int = BROKER_PORT) -> bool:
    """Ethernet, IPv4, TCP: by the source port."""
    start = 14 + (packet.data[14] & 15) * 4
    return struct.unpack_from(">H", packet.data, start)[0] == port


def without(packets: Sequence[Captured], first: int, last: int) -> list[Captured]:
    """The packets without some twelfths, as when a file of a rotation is missing."""
    size = len(packets)
    return [*packets[: size * first // PARTS], *packets[size * last // PARTS :]]


def only(packets: Sequence[Captured], first: int, last: int) -> Sequence[Captured]:
    return packets[len(packets) * first // PARTS : len(packets) * last // PARTS]


def one_side(packets: Sequence[Captured], broker: bool, port: int = BROKER_PORT) -> list[Captured]:
    return [packet for packet in packets if from_broker(packet, port) == broker]


def partly_one_sided(
    packets: Sequence[Captured], broker: bool, port: int, *, late: bool, quarters: int
) -> list[Captured]:
    """One side is seen in the first quarters only, if late behind them only: a mirror port that loses a direction."""
    place = len(packets) * quarters // 4
    return [
        packet
        for number, packet in enumerate(packets)
        if (number >= place) == late or from_broker(packet, port) != broker
    ]


def from_two_points(packets: Sequence[Captured], apart_s: float, lost: float) -> list[Captured]:
    """Captures of two points, each without some packets, merged by time; the clock of the second one is ahead."""
    second = [one._replace(ts_ns=one.ts_ns + int(apart_s * 1e9)) for one in lossy(packets, 5, lost)]
    return sorted([*lossy(packets, 4, lost), *second], key=lambda one: one.ts_ns)


def from_two_clocks(packets: Sequence[Captured], port: int, apart_s: float) -> list[Captured]:
    """Each side captured at its own host, merged by time; the clients' clock is ahead."""
    moved = (one if from_broker(one, port) else one._replace(ts_ns=one.ts_ns + int(apart_s * 1e9)) for one in packets)
    return sorted(moved, key=lambda one: one.ts_ns)


def overtaking(packets: Sequence[Captured], seed: int, most_ms: float) -> list[Captured]:
    """Packets that overtake those captured up to so long before them, with the times at which they came."""
    dice = random.Random(seed)
    return sorted(packets, key=lambda one: one.ts_ns + dice.uniform(0, most_ms * 1e6))


def mixed(packets: Sequence[Captured], seed: int) -> list[Captured]:
    """Half of the capture, thinned, mixed up and doubled."""
    return duplicated(reordered(thinned(only(packets, seed, seed + 6), seed, 0.05, 0), seed), seed)


OF_KAFKA = [
    pytest.param(partial(reordered, seed=1), id="mixed up"),
    pytest.param(partial(reordered, seed=2, distance=20), id="mixed up over 20 packets"),
    pytest.param(partial(duplicated, seed=3, share=0.3), id="doubled"),
    pytest.param(partial(thinned, seed=4, share=0.02), id="2 of 100 lost"),
    pytest.param(partial(thinned, seed=1, share=0.3, keep_first=0), id="30 of 100 lost"),
    pytest.param(partial(thinned, seed=2, share=0.3, keep_first=0), id="30 of 100 lost, others"),
    pytest.param(partial(one_side, broker=False), id="requests only"),
    pytest.param(partial(one_side, broker=True), id="responses only"),
    pytest.param(partial(only, first=0, last=6), id="first half"),
    pytest.param(partial(only, first=6, last=12), id="second half"),
    *(pytest.param(partial(only, first=k, last=12), id=f"from {k} of 12 on") for k in (1, 3, 5, 8)),
    *(pytest.param(partial(without, first=k, last=k + 2), id=f"without {k} to {k + 2} of 12") for k in range(0, 12, 2)),
    *(pytest.param(partial(mixed, seed=k), id=f"all of it, from {k} of 12 on") for k in (0, 2, 4, 6)),
]


@pytest.mark.parametrize("damage", share(OF_KAFKA, every(3, OF_KAFKA)))
def test_a_damaged_healthy_capture_has_no_fault(damage: Damage) -> None:
    damaged = damage(sample("kafka_healthy"))
    assert len(damaged) > 500
    assert alarms(damaged, "KAF") == []


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(partial(reordered, seed=1), id="mixed up"),
        pytest.param(partial(duplicated, seed=3, share=0.3), id="doubled"),
        pytest.param(partial(thinned, seed=4, share=0.02), id="2 of 100 lost"),
        pytest.param(partial(only, first=6, last=12), id="second half"),
    ],
)
def test_damage_does_not_hide_the_fault(damage: Damage) -> None:
    """The same damage to a capture with a fault: the silence above is not deafness."""
    found = {
        code for code, severity, _ in alarms(damage(sample("kafka_stale_commit")), "KAF") if severity == "critical"
    }
    assert {"KAF101", "KAF103"} <= found


OF_MONGODB = [
    pytest.param(partial(reordered, seed=1), id="mixed up"),
    pytest.param(partial(thinned, seed=1, share=0.3, keep_first=0), id="30 of 100 lost"),
    pytest.param(partial(one_side, broker=False, port=MONGO_PORT), id="requests only"),
    pytest.param(partial(one_side, broker=True, port=MONGO_PORT), id="replies only"),
    pytest.param(partial(only, first=5, last=12), id="from the middle on"),
    pytest.param(partial(only, first=0, last=7), id="the beginning"),
    *(pytest.param(partial(without, first=k, last=k + 2), id=f"without {k} to {k + 2} of 12") for k in (1, 4, 6, 8)),
]


@pytest.mark.parametrize("damage", share(OF_MONGODB, every(3, OF_MONGODB)))
def test_a_damaged_healthy_capture_of_mongodb_has_no_fault(damage: Damage) -> None:
    assert alarms(damage(sample("mongo_healthy")), "MON") == []


OF_MQTT = [
    pytest.param(partial(one_side, broker=False, port=MQTT_PORT), id="clients only"),
    pytest.param(partial(one_side, broker=True, port=MQTT_PORT), id="server only"),
    pytest.param(partial(reordered, seed=1), id="mixed up"),
    pytest.param(partial(thinned, seed=1, share=0.3, keep_first=0), id="30 of 100 lost"),
    pytest.param(partial(only, first=5, last=12), id="from the middle on"),
    pytest.param(partial(only, first=0, last=7), id="the beginning"),
]


@pytest.mark.parametrize("damage", OF_MQTT)
def test_a_damaged_healthy_capture_of_mqtt_has_no_fault(damage: Damage) -> None:
    assert alarms(damage(sample("mqtt_healthy")), "MQT") == []


# Captures without a fault: name, protocol, port of the servers. What is in no sample lies beside the repository.
HEALTHY = [
    ("kafka_healthy", "KAF", BROKER_PORT),
    ("mongo_healthy", "MON", MONGO_PORT),
    ("mqtt_healthy", "MQT", MQTT_PORT),
    *(
        one
        for one in (
            ("h01a_rolling_same_client_id", "KAF", BROKER_PORT),
            ("hm_h_mochi_resume", "MQT", MQTT_PORT),
            ("r11_healthy_retain_flag", "MQT", MQTT_PORT),
        )
        if [*KNOWN_INCIDENTS.glob(f"{one[0]}.pcap*")]
    ),
]
ONE_SIDED = [
    (*capture, broker, late, quarters)
    for capture in HEALTHY
    for broker in (False, True)
    for late in (False, True)
    for quarters in (1, 2, 3)
]


@pytest.mark.parametrize(
    ("name", "protocol", "port", "broker", "late", "quarters"),
    pairs(ONE_SIDED, [one for one in ONE_SIDED if one[0] in ("mongo_healthy", "mqtt_healthy") and one[-1] == 2]),
)
def test_a_capture_that_lacks_one_side_for_a_while_has_no_fault(
    name: str, protocol: str, port: int, broker: bool, late: bool, quarters: int
) -> None:
    """Servers or clients are seen until some place only, or from it on only."""
    packets = sample(name)
    assert alarms(packets, protocol) == []
    assert alarms(partly_one_sided(packets, broker, port, late=late, quarters=quarters), protocol) == []


CLOCKS = [
    (*capture, apart_s, lost)
    for capture in HEALTHY
    for apart_s in (-1.5, 0.3, 1.0, 1.5, 2.0)
    for lost in (0.0, 0.05, 0.3, None)
]


@pytest.mark.parametrize(
    ("name", "protocol", "port", "apart_s", "lost"),
    pairs(CLOCKS, [one for one in CLOCKS if one[0] in ("mongo_healthy", "mqtt_healthy") and one[-2:] in
                   ((1.5, 0.05), (1.0, 0.3), (2.0, 0.0), (1.0, None))]),
)  # fmt: skip
def test_clocks_that_are_apart_make_no_fault(
    name: str, protocol: str, port: int, apart_s: float, lost: float | None
) -> None:
    """Two points that saw the same, or, where lost is None, one side each."""
    packets = sample(name)
    merged = from_two_clocks(packets, port, apart_s) if lost is None else from_two_points(packets, apart_s, lost)
    assert alarms(merged, protocol) == []


@pytest.mark.parametrize("seed", share([1, 2, 3, 4], [1]))
@pytest.mark.parametrize("most_ms", [5.0, 50.0])
def test_connections_whose_packets_overtake_each_other_have_no_fault(seed: int, most_ms: float) -> None:
    assert alarms(overtaking(sample("kafka_healthy"), seed, most_ms), "KAF") == []
    assert alarms(overtaking(sample("mqtt_healthy"), seed, most_ms), "MQT") == []
    assert alarms(overtaking(sample("mongo_healthy"), seed, most_ms), "MON") == []


def test_one_step_of_the_clock_hides_no_fault() -> None:
    """Of a fault in a capture whose clock went back once, by a second, the severity stays."""
    packets = sample("kafka_stale_commit")
    half = len(packets) // 2
    stepped = [*packets[:half], *(one._replace(ts_ns=one.ts_ns - 10**9) for one in packets[half:])]
    found = {code for code, severity, _ in alarms(stepped, "KAF") if severity == "critical"}
    assert {"KAF101", "KAF103"} <= found
