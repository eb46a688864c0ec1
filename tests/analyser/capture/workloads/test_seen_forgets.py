"""What was seen long ago is let go of in captures without an end, but at connections that stand."""

from __future__ import annotations

import pickle

from wirewitness.analyser.capture.workloads.seen import End, IdentitiesSeen
from wirewitness.analyser.capture.workloads.workload import identity


def end(port: int) -> End:
    return End("10.0.0.1", port, "10.0.0.2", 9092)


def test_a_connection_that_stands_keeps_its_identity() -> None:
    seen = IdentitiesSeen()
    for port in range(10):
        seen.add(end(port), identity(pid=port + 1), port * 10, port * 10)
    seen.keep_newest(4, {end(3)})
    assert {one.end.port: one.identity.pid for one in seen} == {3: 4, 7: 8, 8: 9, 9: 10}
    seen.keep_newest(1, {end(3), end(7)})
    assert {one.end.port for one in seen} == {3, 7}
    assert len(seen) == 2


def test_some_of_what_was_seen() -> None:
    seen = IdentitiesSeen()
    for port in range(10):
        seen.add(end(port), identity(pid=port + 1), 5, 6)
    assert [(one.end.port, one.identity.pid) for one in seen.some([end(4), end(77)])] == [(4, 5)]
    assert [*pickle.loads(pickle.dumps(seen))] == [*seen]
