"""`wirewitness otel` joins the traces of instrumented applications, and takes a first join for no error."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.app.program import run
from tests.conftest import SAMPLES
from tests.support.mqtt_encode import ack, connack, connect, publish, user_property
from tests.support.packets import pcap
from tests.support.record_batches import Sent, batch
from tests.support.replay import START_NS, client_at
from tests.support.replay_bulk import fetch_exchanges, produce_exchanges
from tests.support.replay_wire import write_connections
from tests.support.wire import Talk

TRACE, OTHER = "4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c"
SPAN, NEXT = "00f067aa0ba902b7", "b7ad6b7169203331"
ONE, SAME, THIRD = f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{NEXT}-00", f"00-{OTHER}-{SPAN}-01"
TIMES = 10
PUBACK = 4


def spans_of(capture: Path) -> list[dict[str, Any]]:
    """All spans, with ids as digits."""
    done = run("otel", capture)
    assert (done.returncode, done.stderr) == (0, b"")
    return [
        span
        for line in done.stdout.splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def links_of(span: dict[str, Any]) -> set[tuple[str, str]]:
    return {(link["traceId"], link["spanId"]) for link in span.get("links", ())}


def kafka(path: Path, traceparents: Sequence[str | None]) -> Path:
    """Ten Produces and ten Fetches whose batches have a record for each of these."""
    records = [
        Sent(1_790_000_000_000, b"k", b"v", [] if said is None else [("id", b"7"), ("traceparent", said.encode())])
        for said in traceparents
    ]
    batches = [(batch(records), len(records))]
    scripts: list[Iterator[Any]] = [produce_exchanges(b"shop", batches), fetch_exchanges(b"till", batches)]
    clients = [client_at(number, islice(script, TIMES)) for number, script in enumerate(scripts)]
    with path.open("wb") as file:
        write_connections(clients, file, START_NS, lambda _: False)
    return path


def mqtt(path: Path, traceparent: str) -> Path:
    """A client publishes and a server delivers, with the same user property."""
    sent = publish("t", b"x", 1, 7, properties=[user_property("traceparent", traceparent)])
    talk, both = Talk(server=("10.0.0.9", 1883)).handshake(), [0, 0]
    said = ((True, connect(5)), (False, connack(properties=())), (True, sent), (False, ack(PUBACK, 7)), (False, sent))
    for from_client, data in said:
        talk.send(from_client, both[from_client], data, ack=both[not from_client])
        both[from_client] += len(data)
    path.write_bytes(pcap(talk.packets, nanoseconds=True))
    return path


def test_produce_and_fetch_are_in_the_trace_that_their_records_name(tmp_path: Path) -> None:
    spans = spans_of(kafka(tmp_path / "k.pcap", [ONE, ONE]))
    assert sorted(span["name"].split()[0] for span in spans) == ["Fetch"] * TIMES + ["Produce"] * TIMES
    assert {(span["traceId"], span["parentSpanId"]) for span in spans} == {(TRACE, SPAN)}
    assert all(links_of(span) == {(TRACE, SPAN)} for span in spans)
    assert len({span["spanId"] for span in spans}) == 2 * TIMES


def test_several_spans_of_one_trace_are_no_single_parent(tmp_path: Path) -> None:
    spans = spans_of(kafka(tmp_path / "k.pcap", [ONE, SAME, None]))
    assert {(span["traceId"], span.get("parentSpanId")) for span in spans} == {(TRACE, None)}
    assert all(links_of(span) == {(TRACE, SPAN), (TRACE, NEXT)} for span in spans)


def test_several_traces_are_linked_and_not_joined(tmp_path: Path) -> None:
    spans = spans_of(kafka(tmp_path / "k.pcap", [ONE, THIRD]))
    assert all(links_of(span) == {(TRACE, SPAN), (OTHER, SPAN)} for span in spans)
    assert not {TRACE, OTHER} & {span["traceId"] for span in spans}
    assert len({span["traceId"] for span in spans}) == 2 * TIMES


@pytest.mark.parametrize(
    "said", [f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", f"ff-{TRACE}-{SPAN}-01", "soon", ONE[:-1], None]
)
def test_what_is_no_traceparent_joins_nothing(tmp_path: Path, said: str | None) -> None:
    spans = spans_of(kafka(tmp_path / "k.pcap", [said]))
    assert len(spans) == 2 * TIMES
    assert all("links" not in span and "parentSpanId" not in span for span in spans)


def test_a_value_that_looks_like_a_header_is_none(tmp_path: Path) -> None:
    path = tmp_path / "k.pcap"
    quoted = Sent(1_790_000_000_000, b"k", b"v", [("note", f'["traceparent", "{ONE}"]'.encode())])
    script = islice(produce_exchanges(b"shop", [(batch([quoted]), 1)]), 1)
    with path.open("wb") as file:
        write_connections([client_at(0, script)], file, START_NS, lambda _: False)
    assert [span.get("links") for span in spans_of(path)] == [None]


def test_mqtt_publishes_on_both_ways(tmp_path: Path) -> None:
    spans = [span for span in spans_of(mqtt(tmp_path / "m.pcap", ONE)) if span["name"].startswith("publish")]
    assert len(spans) == 2
    assert {(span["traceId"], span["parentSpanId"]) for span in spans} == {(TRACE, SPAN)}


def test_a_first_join_is_no_error() -> None:
    """KIP-394: it is answered with the id that the member is to join with."""
    found = []
    for span in spans_of(SAMPLES / "kafka_fenced_commit.pcapng"):
        said = {one["key"]: one["value"] for one in span["attributes"]}
        if span["name"] == "JoinGroup" and said.get("wirewitness.error.code") == {"intValue": "79"}:
            found.append((span.get("status", {}), "error.type" in said))
    assert found
    assert all(one == ({}, False) for one in found)
