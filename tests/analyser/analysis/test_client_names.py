"""Identities in sentences: behind the address that is meant, listed or counted where there are several, never
guessed."""

from __future__ import annotations

import duckdb
import pytest

from wirewitness.analyser.analysis.client_names import (
    Client,
    Identities,
    _Was,
    identities_of,
    named_sentence,
    several_words,
)
from wirewitness.analyser.capture.workloads.workload import Identity

JAVA, GO = Identity(1, "java", pod="pay-1"), Identity(2, "go", pod="pay-2")
MANY = [Identity(number, "java", pod="pay-1") for number in range(1, 9)]


def identities(**by: Identity) -> Identities:
    """Identities by address, `a10_0_0_1`, or by address and client id, `a10_0_0_1__shop`."""
    found = Identities()
    for name, one in by.items():
        address, _, client_id = name.removeprefix("a").partition("__")
        key = Client(address.replace("_", "."), client_id or None)
        found.by_client.setdefault(key, []).append(_Was(one, 0, 100))
    return found


def told(sentence: str, known: Identities, *clients: Client, numbers: object = None) -> str:
    return named_sentence(sentence, clients, {"more": numbers}, known, 10, 20)


ONE = Client("10.0.0.1", "shop-1")
PLACES = {
    "of Kafka": (
        "client shop-1 at 10.0.0.1 (member m) left",
        "client shop-1 at 10.0.0.1 (pod pay-1, java pid 1) (member m) left",
    ),
    "at the end": ("Look at client shop-1 at 10.0.0.1.", "Look at client shop-1 at 10.0.0.1 (pod pay-1, java pid 1)."),
    "twice": ("10.0.0.1 and 10.0.0.1", "10.0.0.1 (pod pay-1, java pid 1) and 10.0.0.1"),
    "part of another": ("client x at 10.0.0.12 and 110.0.0.1 and 10.0.0.1.5", None),
    "in a name": ("topic a-10.0.0.1 and b.10.0.0.1 and 10.0.0.1-b", None),
}


@pytest.mark.parametrize(("sentence", "named"), PLACES.values(), ids=PLACES)
def test_place_in_a_sentence(sentence: str, named: str | None) -> None:
    assert told(sentence, identities(a10_0_0_1=JAVA), ONE) == (named or sentence)


def test_addresses_of_ipv6_in_brackets() -> None:
    known = Identities({Client("fd00::9"): [_Was(JAVA, 0, 100)], Client("fd00::9", None, 4000): [_Was(GO, 0, 100)]})
    assert told("client x at fd00::9.", known, Client("fd00::9")) == "client x at fd00::9 (pod pay-1, java pid 1)."
    assert (
        told("client x at [fd00::9]:4000 left", known, Client("fd00::9"))
        == "client x at [fd00::9]:4000 (pod pay-2, go pid 2) left"
    )


def test_port_tells_connections_apart() -> None:
    known = identities(a10_0_0_1=JAVA)
    known.by_client[Client("10.0.0.1", None, 4000)] = [_Was(GO, 0, 100)]
    assert told("client x at 10.0.0.1:4000 left", known, ONE) == "client x at 10.0.0.1:4000 (pod pay-2, go pid 2) left"
    assert told("client x at 10.0.0.1:9092 left", known, ONE) == "client x at 10.0.0.1:9092 left"


def test_client_id_tells_processes_of_one_address_apart() -> None:
    known = identities(a10_0_0_1=JAVA, a10_0_0_1__shop=JAVA, a10_0_0_1__other=GO)
    known.by_client[Client("10.0.0.1")].append(_Was(GO, 0, 100))
    text = "client shop at 10.0.0.1 and client other at 10.0.0.1"
    assert told(text, known, Client("10.0.0.1", "shop"), Client("10.0.0.1", "other")) == (
        "client shop at 10.0.0.1 (pod pay-1, java pid 1) and client other at 10.0.0.1 (pod pay-2, go pid 2)"
    )
    assert told("client x at 10.0.0.1", known, Client("10.0.0.1", "unknown")) == (
        "client x at 10.0.0.1 (pod pay-1, java pid 1 or pod pay-2, go pid 2)"
    )


def test_client_id_of_another_protocol_is_another_client() -> None:
    known = identities(a10_0_0_1=JAVA, a10_0_0_1__load=JAVA)
    known.by_client[Client("10.0.0.1", "load")].append(_Was(GO, 0, 100))
    known.by_client[Client("10.0.0.1", "load", None, "mongo")] = [_Was(GO, 0, 100)]
    text = "client load at 10.0.0.1"
    assert told(text, known, Client("10.0.0.1", "load", None, "mongo")) == f"{text} (pod pay-2, go pid 2)"
    assert told(text, known, Client("10.0.0.1", "load", None, "mqtt")) == (
        f"{text} (pod pay-1, java pid 1 or pod pay-2, go pid 2)"
    )


def test_identities_are_told_in_the_order_in_which_they_were_seen() -> None:
    processes = ((9, 30), (3, 20), (7, 20), (5, 40))
    with duckdb.connect() as con:
        flows = "flow_id VARCHAR, protocol VARCHAR, client_address VARCHAR, client_port INTEGER"
        identity = "client_pid INTEGER, client_process VARCHAR, client_user VARCHAR, client_container VARCHAR"
        where = "client_pod VARCHAR, client_namespace VARCHAR, client_workload VARCHAR, client_host VARCHAR"
        times = "ts_first TIMESTAMP_NS, ts_last TIMESTAMP_NS"
        con.execute(f"CREATE TABLE flows ({flows}, {identity}, {where}, {times})")
        con.execute("CREATE TABLE exchanges (flow_id VARCHAR, client_address VARCHAR, client_id VARCHAR)")
        for number, (pid, first) in enumerate(processes):
            protocol = "mongo" if pid == 5 else "kafka"
            values = f"'f{number}', '{protocol}', '10.0.0.1', {number}, {pid}, 'python ({pid})'"
            con.execute(
                f"INSERT INTO flows VALUES ({values}, NULL, NULL, NULL, NULL, NULL, NULL, "
                f"make_timestamp_ns({first}), make_timestamp_ns(100))"
            )
            con.execute(f"INSERT INTO exchanges VALUES ('f{number}', '10.0.0.1', 'load')")
        for protocol, pids in (("kafka", [3, 7, 9]), (None, [3, 7, 9, 5]), ("mongo", [5])):
            client = Client("10.0.0.1", "load", None, protocol)
            found = identities_of(con, {client}, set(), {"flows", "exchanges"})
            assert [one.pid for one in found.of(client, None, None)] == pids


def test_other_times_name_nobody() -> None:
    known = Identities({Client("10.0.0.1"): [_Was(JAVA, 0, 5), _Was(GO, 15, 100)]})
    assert told("at 10.0.0.1", known, ONE) == "at 10.0.0.1 (pod pay-2, go pid 2)"
    assert named_sentence("at 10.0.0.1", [ONE], {}, known, 200, 300) == "at 10.0.0.1"


def test_several_are_listed_and_many_are_counted() -> None:
    assert several_words([JAVA, GO]) == "pod pay-1, java pid 1 or pod pay-2, go pid 2"
    assert several_words(MANY) == "pod pay-1, java, one of 8 processes"


def test_client_that_calls_itself_like_the_address_of_another_is_not_taken_for_it() -> None:
    liar = Client("10.0.0.9", "shop-1 at 10.0.0.1")
    text = "client shop-1 at 10.0.0.1 at 10.0.0.9 left"
    known = identities(a10_0_0_1=JAVA, a10_0_0_9=GO)
    assert told(text, known, liar, ONE, numbers=[{"client_id": liar.client_id}]) == (
        "client shop-1 at 10.0.0.1 at 10.0.0.9 (pod pay-2, go pid 2) left"
    )


def test_names_of_topics_are_left_alone() -> None:
    text = "client shop-1 at 10.0.0.2 wrote to topic of 10.0.0.1 now"
    known = identities(a10_0_0_1=JAVA)
    assert told(text, known, ONE, numbers={"topic": "topic of 10.0.0.1 now"}) == text
