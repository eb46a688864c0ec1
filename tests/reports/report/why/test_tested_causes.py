"""`why` says only what was tested: rows with one fault each, and rows that look alike."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.reports.base.formats.document import Cells
from wirewitness.reports.base.why.asking import Asking, coverage
from wirewitness.reports.base.why.model import Chain, NoSubject, Step
from wirewitness.reports.protocols.kafka.why.partition import clients_of
from wirewitness.reports.protocols.kafka.why.refused import no_leader, refused_access, truncated
from wirewitness.reports.report.why.section import chain_sections
from wirewitness.reports.report.why.subjects import answer
from wirewitness.reports.report.why.waits import tcp_waits

SECOND = 1_000_000_000
SPOT = {"cluster_id": "c", "topic": "orders", "partition": 3, "group_id": "billing"}
FLOW = {
    "flow_id": "aa", "ts_first": 0, "ts_last": 30 * SECOND, "bytes_to_server": 10, "bytes_to_client": 10,
    "gap_bytes": 0, "truncated_packets": 0, "handshake_seen": True,
}  # fmt: skip


def ask(**tables: list[dict[str, Any]]) -> Asking:
    return Asking(RowsAnalysis(tables))


@pytest.mark.parametrize(
    ("last", "clients"),
    [
        (None, [("a", "10.0.0.1"), ("b", "10.0.0.2")]),
        ({"client_id": "c", "client_address": "10.0.0.3"}, [("c", "10.0.0.3")]),
    ],
    ids=["nobody committed", "one did"],
)
def test_findings_about_readers_count_where_nobody_commits(
    last: dict[str, Any] | None, clients: list[tuple[str, str]]
) -> None:
    rows = [
        {**SPOT, "exchange_id": f"{number}", "client_id": client, "client_address": address, "group_id": group}
        for number, (client, address, group) in enumerate(
            [("b", "10.0.0.2", "billing"), ("a", "10.0.0.1", "billing"), ("x", "10.0.0.9", "other")] * 2
        )
    ]
    assert clients_of(ask(kafka_fetch_partitions=rows), SPOT, last) == clients


def metadata(at_s: int, leader: int | None, error: int = 0) -> dict[str, Any]:
    return {
        "exchange_id": f"aa-c-{at_s}", "ts": at_s * SECOND, "cluster_id": "c", "topic": "orders", "partition": 3,
        "leader_id": leader, "error_code": error, "request_packet": at_s,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("told", "packet"),
    [
        ([metadata(1, 2), metadata(5, -1, 5), metadata(9, -1, 5)], 5),
        ([metadata(1, None, 5)], 1),
        ([metadata(1, -1, 5), metadata(3, 2), metadata(7, -1)], 7),
        ([metadata(1, 2), metadata(5, -1, 5), metadata(9, 2)], None),
        ([metadata(1, 2)], None),
        ([{**metadata(1, -1, 5), "partition": 4}], None),
        ([{**metadata(1, -1, 5), "cluster_id": "other"}], None),
        ([metadata(1, None, 3)], None),
    ],
    ids=["lost", "never", "again", "found", "there", "another partition", "another cluster", "no such topic"],
)
def test_a_partition_without_leader(told: list[dict[str, Any]], packet: int | None) -> None:
    found = no_leader(ask(kafka_partitions=told), SPOT)
    assert (found and found.places[0].packet) == packet


def cut(at_s: int, at: int, end: int, **more: Any) -> dict[str, Any]:
    return {
        "exchange_id": f"aa-c-{at_s}", "ts": at_s * SECOND, "cluster_id": "c", "topic": "orders", "partition": 3,
        "truncated_at": at, "end_before": end, "leader_id": 3, "unclean": True, "request_packet": at_s, **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "reached", "packet"),
    [
        ([cut(5, 547, 906)], 900, 5),
        ([cut(5, 547, 906)], 547, None),
        ([cut(5, 547, 550), cut(7, 547, 906)], 900, 7),
        ([cut(5, 547, 906, partition=4)], 900, None),
        ([cut(5, 547, 906, cluster_id="other")], 900, None),
    ],
    ids=["had been read", "never so far", "the one that took most", "another partition", "another cluster"],
)
def test_a_log_that_was_cut_below_what_the_group_had_reached(
    rows: list[dict[str, Any]], reached: int, packet: int | None
) -> None:
    found = truncated(ask(kafka_truncations=rows), SPOT, reached)
    assert (found and found.places[0].packet) == packet
    if found:
        assert "truncated at 547 when broker 3 became leader, which was not in sync: about 359 records" in found.what


def fetch(at_s: int, error: int, client: str = "app") -> dict[str, Any]:
    return {
        "exchange_id": f"aa-c-{at_s}", "ts": at_s * SECOND, "ts_response": at_s * SECOND + 1, "cluster_id": "c",
        "topic": "orders", "partition": 3, "group_id": "billing", "client_id": client, "client_address": "10.0.0.1",
        "error_code": error, "error_name": {1: "OFFSET_OUT_OF_RANGE", 6: "NOT_LEADER_OR_FOLLOWER"}.get(error),
        "request_packet": at_s, "flow_id": "aa",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("told", "what"),
    [
        ([fetch(1, 0), fetch(2, 6), fetch(3, 6), fetch(4, 1)], "2 requests of 3 that were refused within 1.0 s"),
        ([fetch(1, 0), fetch(2, 6)], "with NOT_LEADER_OR_FOLLOWER: the broker is not the leader of the partition"),
        ([fetch(1, 0), fetch(2, 6), fetch(3, 0)], None),
        ([fetch(1, 0)], None),
    ],
    ids=["the commonest", "one", "healed", "none"],
)
def test_fetches_that_are_refused_at_the_last(told: list[dict[str, Any]], what: str | None) -> None:
    found = refused_access(ask(kafka_fetch_partitions=told), SPOT, "Fetch")
    assert (what in found.what) if what and found else found is None


@pytest.mark.parametrize(
    ("change", "whole", "said"),
    [
        ({}, True, "1 connection: both directions seen, no bytes missing"),
        ({"gap_bytes": 1200}, False, "1.2 kB missing"),
        ({"bytes_to_client": 0}, False, "1 of them seen in one direction"),
        ({"truncated_packets": 2}, False, "2 packets cut short"),
        ({"flow_id": "bb"}, False, "no connection of it is in the capture"),
    ],
)
def test_how_much_of_the_capture_a_conclusion_rests_on(change: dict[str, Any], whole: bool, said: str) -> None:
    covered = coverage(ask(flows=[{**FLOW, **change}]), "select 'aa' as flow_id")
    assert covered.whole is whole
    assert said in covered.text


def exchange(number: int, sent_ms: int, answered_ms: int | None, **more: Any) -> dict[str, Any]:
    status = "unanswered" if answered_ms is None else "ok"
    return {
        "exchange_id": f"aa-c-{number}", "request_message_id": f"aa-c-{number}", "flow_id": "aa", "protocol": "kafka",
        "response_message_id": None if answered_ms is None else f"aa-s-{number}", "direction": "client_to_server",
        "operation": "Produce", "client_id": "app", "client_address": "10.0.0.1", "server_address": "10.0.0.2",
        "server_port": 9092, "ts": sent_ms * 1_000_000, "request_packet": number, "status": status,
        "ts_response": None if answered_ms is None else answered_ms * 1_000_000, "awaitable": False,
        "latency_ms": None if answered_ms is None else float(answered_ms - sent_ms), **more,
    }  # fmt: skip


def only(asked: Asking, *words: str) -> Chain:
    (chain,) = answer(asked, words)
    return chain


def first_cause(chain: Chain) -> Step | None:
    return next(iter(chain.steps[0].causes), None)


def test_a_request_that_its_client_gave_up_on_is_told_by_the_close() -> None:
    flow = {**FLOW, "ts_closed": 9 * SECOND, "closed_by": "client"}
    cause = first_cause(only(ask(exchanges=[exchange(1, 0, None)], flows=[flow]), "aa-c-1"))
    assert cause is not None
    assert cause.link.what == "app@10.0.0.1 closed the connection before the response"


@pytest.mark.parametrize("change", [{}, {"ts_closed": 9 * SECOND, "gap_bytes": 10}], ids=["open", "bytes missing"])
def test_a_request_whose_response_was_not_captured_accuses_nobody(change: dict[str, Any]) -> None:
    chain = only(ask(exchanges=[exchange(1, 0, None)], flows=[{**FLOW, **change}]), "aa-c-1")
    assert first_cause(chain) is None
    assert "capture" in chain.steps[0].end


def test_of_many_requests_in_line_the_pace_is_told() -> None:
    rows = [exchange(number, 100 * number, 1000 * number) for number in range(1, 8)]
    cause = first_cause(only(ask(exchanges=rows, flows=[FLOW]), "aa-c-7"))
    assert cause is not None
    assert cause.link.kind == "queue"
    assert cause.link.what.startswith("6 requests before it on its connection had no response yet")
    assert "1.0 s apart" in cause.link.what


def test_one_request_before_it_is_told_itself() -> None:
    cause = first_cause(only(ask(exchanges=[exchange(1, 0, 900), exchange(2, 10, 1000)], flows=[FLOW]), "aa-c-2"))
    assert cause is not None
    assert cause.link.kind == "exchange"


def test_a_response_that_nothing_kept_waiting_has_no_queue() -> None:
    chain = only(ask(exchanges=[exchange(1, 0, 5), exchange(2, 10, 1000)], flows=[FLOW]), "aa-c-2")
    assert first_cause(chain) is None


@pytest.mark.parametrize(
    ("numbers", "healthy"),
    [
        (None, True),
        ({"clients": [{"address": "10.0.0.1", "client_id": "app"}], "operation": "Produce"}, False),
        ({"flow_id": "aa"}, False),
        ({"clients": [{"address": "10.0.0.9", "client_id": "app"}], "operation": "Produce"}, True),
        ({"clients": [{"address": "10.0.0.1", "client_id": "app"}], "operation": "Fetch"}, True),
    ],
    ids=["none", "client and operation", "connection", "another client", "another operation"],
)
def test_no_exchange_is_called_usual_that_a_finding_is_about(numbers: dict[str, Any] | None, healthy: bool) -> None:
    rows = [exchange(number, 100 * number, 100 * number + 50) for number in range(1, 13)]
    finding = {
        "finding_id": "f" * 16, "code": "KAF302", "name": "slow-api", "severity": "warning", "confidence": "high",
        "provisional": False, "subject": "", "sentence": "Slow.", "next_step": "", "evidence": "[]",
        "numbers": json.dumps(numbers), "title": "Slow",
    }  # fmt: skip
    chain = only(ask(exchanges=rows, flows=[FLOW], findings=[finding] if numbers else []), "aa-c-5")
    assert chain.healthy is healthy
    assert chain.verdict.startswith("no slower than others of its kind: ") is healthy
    assert "nothing is wrong" not in chain.verdict


@pytest.mark.parametrize(
    ("wait_ms", "answer_ms", "told"),
    [(40.0, 0.1, True), (200.0, 1.0, True), (25.0, 0.1, False), (700.0, 0.1, False), (200.0, 90.0, False)],
    ids=["Linux", "Windows", "too soon for one", "too late for one", "the ACK did not end it"],
)
def test_a_delayed_ack_is_told_where_the_ack_alone_ended_it(wait_ms: float, answer_ms: float, told: bool) -> None:
    wait = {
        "flow_id": "aa", "direction": "server_to_client", "kind": "delayed_ack", "ts": 10_000_000, "packet_first": 4,
        "ts_last": 900_000_000, "wait_ms": wait_ms, "answer_ms": answer_ms, "file": "a",
    }  # fmt: skip
    asked = ask(tcp_waits=[wait])
    found = {**exchange(1, 0, 1000), "sent_ns": 0, "answered_ns": SECOND}
    assert bool(tcp_waits(asked, found)) is told


def test_shares_of_a_time_are_never_rounded_to_nothing_or_all() -> None:
    rows = [exchange(1, 0, 99_999), exchange(2, 99_998, 100_000)]
    (section,) = chain_sections([only(ask(exchanges=[*rows, exchange(3, 1, 100_000)], flows=[FLOW]), "aa-c-3")])
    table = next(block for block in section.blocks if isinstance(block, Cells))
    assert [row[2] for row in table.rows] == [">99 %", "<1 %", ""]


class _Word(str):
    """Counts what it is compared with."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        _Word.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


class _Words(str):
    """A subject, as `mcp` gives it: one text."""

    __slots__ = ()

    def split(self, *_: Any) -> list[str]:  # type: ignore[override]
        return [_Word(word) for word in str.split(self)]


def test_a_subject_of_many_words_costs_their_number() -> None:
    many = 2000
    with pytest.raises(NoSubject, match="nothing here is called"):
        answer(ask(), [_Words("a " * many + "mongo")])
    assert many < _Word.compared < 20 * many
