"""What was seen of identities: each once, from first to last; a fixed amount, of which the newest may be kept."""

import pytest

from wirewitness.analyser.capture.workloads import seen
from wirewitness.analyser.capture.workloads.seen import End, IdentitiesSeen, Seen
from wirewitness.analyser.capture.workloads.workload import Identity

JAVA, GO = Identity(1, "java"), Identity(2, "go")


def end(port: int) -> End:
    return End("10.0.0.1", port, "10.0.0.2", 9092)


def test_sightings_of_one_identity_are_one_from_first_to_last() -> None:
    kept = IdentitiesSeen()
    for ts_ns in (20, 10, 30):
        kept.add(end(1), JAVA, ts_ns, ts_ns + 1)
    kept.add(end(1), GO, 40, 40)
    assert [*kept] == [Seen(end(1), JAVA, 10, 31), Seen(end(1), GO, 40, 40)]


def test_what_is_too_much_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "MAX_SEEN", 2)
    monkeypatch.setattr(seen, "MAX_IDENTITIES", 1)
    kept = IdentitiesSeen()
    for port in range(4):
        kept.add(end(port), JAVA, port, port)
    kept.add(end(0), GO, 0, 0)
    assert (len(kept), kept.dropped) == (2, 3)


def test_the_newest_may_be_kept() -> None:
    kept = IdentitiesSeen()
    for port in range(10):
        kept.add(end(port), JAVA if port < 8 else GO, port, port)
    kept.keep_newest(3)
    assert [one.end.port for one in kept] == [7, 8, 9]
    kept.add(end(7), JAVA, 20, 20)
    assert {one.end.port: one.last_ns for one in kept} == {7: 20, 8: 8, 9: 9}


def test_what_others_saw_is_added() -> None:
    one, other = IdentitiesSeen(undirected=2), IdentitiesSeen(undirected=3, undescribed=1)
    one.add(end(1), JAVA, 10, 10)
    other.add(end(1), JAVA, 20, 20)
    other.add(end(2), GO, 5, 5)
    one.merge(other)
    assert (one.undirected, one.undescribed) == (5, 1)
    assert [*one] == [Seen(end(1), JAVA, 10, 20), Seen(end(2), GO, 5, 5)]
