"""Narrow ways: a receive buffer that is too small for a long line, a neighbour that takes the whole link."""

from __future__ import annotations

from tests.lab import clients
from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.incident import Incident
from tests.lab.slow_link import gets_slowly

BEHIND = r"behind|lag|slow|late|longer|window|buffer|throughput|takes|link|path|bandwidth"


@fault(libraries=("librdkafka",), backdrop_restart=False)
def tiny_receive_buffer(it: Incident) -> None:
    """receive.buffer.bytes=4096 on a line of 70 ms each way: a reader gets less than is written, its twin does not."""
    (topic,) = it.topics(2)
    it.begin()
    feed = it.sender(topic, "rate=150", "size=800")
    host = it.new_host()
    it.start("far", host, clients.python_command("far_link", "70")).wait_for_event("ready")
    how = {"protocol": "classic", "session_ms": 20_000, "host": host}
    good = it.member(it.world.names.group(), [topic], "librdkafka", **how)  # type: ignore[arg-type]
    it.seconds(3, 4)
    it.from_now()
    group = it.world.names.group()
    bad = it.member(group, [topic], "librdkafka", settings=("socket.receive.buffer.bytes=4096",), **how)  # type: ignore[arg-type]
    it.seconds(30, 34)
    it.is_told(
        "a reader's receive buffer is too small for its long line: it falls behind", bad,
        [told.any_of(told.name(bad.client_id), told.name(group))], BEHIND, affected=[feed, bad, good],
        never=[told.accusing(good.client_id)],
    )  # fmt: skip


@fault(libraries=("librdkafka",), backdrop_restart=False)
def backfill_starves_neighbour(it: Incident) -> None:
    """A backfill on the host of a small reader takes its whole link: what the reader waits for comes seconds late."""
    old, fresh = it.topics(2, 2)
    fill = it.sender(old, "rate=400", "size=2000")
    it.seconds(14, 15)
    fill.process.terminate()
    it.begin()
    feed = it.sender(fresh, "rate=20")
    host, group = it.new_host(), it.world.names.group()
    how = {"protocol": "classic", "session_ms": 20_000, "host": host}
    with gets_slowly(it.world.hosts, host, 600):
        small = it.member(it.world.names.group(), [fresh], "librdkafka", **how)  # type: ignore[arg-type]
        it.seconds(10, 11)
        it.from_now()
        bad = it.member(group, [old], "librdkafka", **how)  # type: ignore[arg-type]
        it.seconds(30, 34)
    it.is_told(
        "a backfill takes the whole link of its host: the reader beside it waits", bad,
        [told.any_of(told.name(bad.client_id), told.name(group), told.name(bad.address))], BEHIND,
        affected=[feed, bad, small], never=[r"(?i)(?:broker|server) (?:was frozen|stood still)"],
    )  # fmt: skip
    it.truth["sides"] = ["client", "network"]
