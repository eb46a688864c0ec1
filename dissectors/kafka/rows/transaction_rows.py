"""Rows of transactions: what a producer or a coordinator does to one, event by event.

In: a request with its response (None when it was never answered). Out: kafka_transactions rows appended to the sink.
KIP-98 describes the requests; since KIP-890 a transaction may also begin with its first write, without a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.kafka.rows.change_fields import TRANSACTIONS
from wirewitness.dissectors.kafka.rows.fields import Request, Response, placed_exchange_of
from wirewitness.dissectors.kafka.rows.group_rows import topic_key
from wirewitness.dissectors.kafka.schema.primitives import Value

Parts = list[tuple[str, int]]


class Event(NamedTuple):
    """One transactional event of an exchange.

    committed: EndTxn and markers only. answered_*: the producer id and epoch that the answer gives. error_code: the
    first that is not 0, None while unanswered.
    """

    name: str
    transactional_id: str | None
    producer_id: int
    producer_epoch: int
    error_code: int | None
    parts: Parts = []
    group_id: str | None = None
    committed: bool | None = None
    answered_producer_id: int | None = None
    answered_producer_epoch: int | None = None
    timeout_ms: int | None = None


def init_rows(request: Request, response: Response | None, out: Sink) -> None:
    """An InitProducerId: the producer's own id and epoch (from version 3), and those it is given."""
    value, answer = request.value, _answer(response)
    if value is None:
        return
    given = _producer(answer)
    asked = value.get("producer_id", -1), value.get("producer_epoch", -1)
    event = Event(
        "init_producer_id",
        value["transactional_id"],
        *asked,
        answer.get("error_code"),
        answered_producer_id=given[0],
        answered_producer_epoch=given[1],
        timeout_ms=value["transaction_timeout_ms"],
    )
    _add(request, response, out, [event])


def add_partitions_rows(request: Request, response: Response | None, out: Sink) -> None:
    """An AddPartitionsToTxn: one event, or from version 4 one for each transaction."""
    value = request.value
    if value is not None:
        _add(request, response, out, _added(value, _answer(response)))


def _added(value: Value, answer: Value) -> Iterator[Event]:
    old = "v3_and_below_transactional_id" in value
    transactions = (
        [{name.removeprefix("v3_and_below_"): value[name] for name in value}] if old else value["transactions"]
    )
    answers = {one["transactional_id"]: one["topic_results"] for one in answer.get("results_by_transaction", ())}
    if "results_by_topic_v3_and_below" in answer:
        answers = {value["v3_and_below_transactional_id"]: answer["results_by_topic_v3_and_below"]}
    for one in transactions:
        name = one["transactional_id"]
        error = answer.get("error_code") or _first_error(
            answers.get(name), "results_by_partition", "partition_error_code"
        )
        verb = "verify_partitions_in_txn" if one.get("verify_only") else "add_partitions_to_txn"
        yield Event(verb, name, one["producer_id"], one["producer_epoch"], error, _indexes(one["topics"], "partitions"))


def add_offsets_rows(request: Request, response: Response | None, out: Sink) -> None:
    """An AddOffsetsToTxn."""
    value = request.value
    if value is not None:
        event = Event(
            "add_offsets_to_txn",
            value["transactional_id"],
            value["producer_id"],
            value["producer_epoch"],
            _answer(response).get("error_code"),
            group_id=value["group_id"],
        )
        _add(request, response, out, [event])


def offset_commit_rows(request: Request, response: Response | None, out: Sink) -> None:
    """A TxnOffsetCommit; the offsets themselves are rows of kafka_offset_commits."""
    value = request.value
    if value is None:
        return
    parts = [
        (_name(topic), partition["partition_index"]) for topic in value["topics"] for partition in topic["partitions"]
    ]
    event = Event(
        "txn_offset_commit",
        value["transactional_id"],
        value["producer_id"],
        value["producer_epoch"],
        _first_error(_answer(response).get("topics"), "partitions", "error_code"),
        parts,
        value["group_id"],
    )
    _add(request, response, out, [event])


def end_rows(request: Request, response: Response | None, out: Sink) -> None:
    """An EndTxn; from version 5 the answer names the producer id and epoch of the next transaction (KIP-890)."""
    value, answer = request.value, _answer(response)
    if value is not None:
        given = _producer(answer)
        event = Event(
            "end_txn",
            value["transactional_id"],
            value["producer_id"],
            value["producer_epoch"],
            answer.get("error_code"),
            committed=value["committed"],
            answered_producer_id=given[0],
            answered_producer_epoch=given[1],
        )
        _add(request, response, out, [event])


def marker_rows(request: Request, response: Response | None, out: Sink) -> None:
    """A WriteTxnMarkers of a coordinator: one event for each producer whose transaction ends."""
    value, answer = request.value, _answer(response)
    if value is None:
        return
    answers = {one["producer_id"]: one["topics"] for one in answer.get("markers", ())}
    events = [
        Event(
            "write_txn_markers",
            None,
            one["producer_id"],
            one["producer_epoch"],
            _first_error(answers.get(one["producer_id"]), "partitions", "error_code"),
            _indexes(one["topics"], "partition_indexes"),
            committed=one["transaction_result"],
        )
        for one in value["markers"]
    ]
    _add(request, response, out, events)


def _add(request: Request, response: Response | None, out: Sink, events: Iterable[Event]) -> None:
    rows = out.rows("kafka_transactions")
    if rows is None:
        return
    exchange = placed_exchange_of(request, response)
    for event in events:
        topics = dict.fromkeys(topic for topic, _ in event.parts)
        rows.append(
            TRANSACTIONS.row(
                **exchange,
                client_id=request.client_id,
                event=event.name,
                transactional_id=event.transactional_id,
                producer_id=event.producer_id,
                producer_epoch=event.producer_epoch,
                answered_producer_id=event.answered_producer_id,
                answered_producer_epoch=event.answered_producer_epoch,
                group_id=event.group_id,
                topics=",".join(topics) or None,
                partitions=",".join(f"{topic}-{index}" for topic, index in event.parts) or None,
                partitions_count=len(event.parts) or None,
                committed=event.committed,
                transaction_timeout_ms=event.timeout_ms,
                error_code=event.error_code,
            )
        )


def _answer(response: Response | None) -> Value:
    return {} if response is None or response.value is None else response.value


def _producer(answer: Value) -> tuple[int | None, int | None]:
    """Producer id and epoch of an answer; None where it has none or says -1."""
    if answer.get("error_code") != 0 or answer.get("producer_id", -1) < 0:
        return None, None
    return answer["producer_id"], answer["producer_epoch"]


def _indexes(topics: Iterable[Value], field: str) -> Parts:
    return [(topic["name"], index) for topic in topics for index in topic[field]]


def _name(topic: Value) -> str:
    name, topic_id = topic_key(topic)
    return name or topic_id or "?"


def _first_error(topics: Iterable[Value] | None, partitions: str, code: str) -> int | None:
    """The first error code that is not 0 in an answer by topics; None when there is no such answer."""
    if topics is None:
        return None
    codes = (int(partition[code]) for topic in topics for partition in topic[partitions])
    return next((found for found in codes if found), 0)
