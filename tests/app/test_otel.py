"""`wirewitness otel`: spans at a real OTLP receiver, lines of OTLP JSON, and endpoints that fail."""

from __future__ import annotations

import base64
import json
import socket
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

import wirewitness
from tests.app.program import run
from tests.conftest import SAMPLES
from tests.support.otlp_receiver import Received, receiver, values

KAFKA = SAMPLES / "kafka_fenced_commit.pcapng"
MQTT = SAMPLES / "mqtt_qos2_stuck.pcapng"
MONGO = SAMPLES / "mongo_shapes_and_errors.pcapng"


@pytest.fixture(scope="module")
def sent() -> Received:
    with receiver() as received:
        done = run("otel", KAFKA, MQTT, MONGO, "--endpoint", received.url)
    assert done.returncode == 0, done.stderr
    assert done.stdout == b""
    assert done.stderr.decode().splitlines()[-1] == f"{len(received.spans()):,} spans sent"
    return received


@pytest.fixture(scope="module")
def exchanges() -> dict[str, dict[str, Any]]:
    with wirewitness.read([KAFKA, MQTT, MONGO], tables=["exchanges"]) as analysis:
        rows = analysis.sql(
            "select *, epoch_ns(ts) as from_ns, epoch_ns(ts_response) as to_ns from exchanges"
        ).to_pylist()
    return {row["exchange_id"]: row for row in rows}


def test_every_exchange_is_one_span(sent: Received, exchanges: dict[str, dict[str, Any]]) -> None:
    spans = sent.spans()
    assert sent.paths == ["/v1/traces"] * len(sent.requests)
    assert len(sent.requests) == -(-len(spans) // 512)
    assert len(spans) == len({span.span_id for span in spans}) == len(exchanges) > 600
    for span in spans:
        found = values(span)
        row = exchanges[str(found["wirewitness.exchange_id"])]
        assert span.kind == Span.SPAN_KIND_CLIENT
        assert (len(span.trace_id), len(span.span_id), span.parent_span_id) == (16, 8, b"")
        assert span.start_time_unix_nano == row["from_ns"]
        if row["to_ns"] is not None:
            assert span.end_time_unix_nano == row["to_ns"]
        assert (found["server.address"], found["server.port"]) == (row["server_address"], row["server_port"])
        assert found["wirewitness.status"] == row["status"]
        is_error = row["status"] == "error" and (row["operation"], row["error_code"]) != ("JoinGroup", 79)
        assert (span.status.code == Status.STATUS_CODE_ERROR) == is_error == ("error.type" in found)
        if is_error:
            assert found["wirewitness.error.code"] == row["error_code"]
            assert found["error.type"] == found["wirewitness.error.name"] == row["error_name"]
            assert span.status.message == f"{row['error_name']} ({row['error_code']})"


def by_name(received: Received) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for span in received.spans():
        found.setdefault(span.name, []).append(values(span))
    return found


def test_names_and_attributes_are_those_of_the_conventions(sent: Received) -> None:
    named = by_name(sent)
    with wirewitness.read([KAFKA, MQTT, MONGO], tables=["kafka_produce_batches", "mongo_commands"]) as analysis:
        [batch] = analysis.sql("from kafka_produce_batches limit 1").to_pylist()
        [find] = analysis.sql(
            "from mongo_commands where command = 'find' and collection is not null limit 1"
        ).to_pylist()
    [produce] = [
        one for one in named[f"Produce {batch['topic']}"] if one["wirewitness.exchange_id"] == batch["exchange_id"]
    ]
    assert produce["messaging.system"] == "kafka"
    assert produce["messaging.operation.name"] == "Produce"
    assert produce["messaging.operation.type"] == "send"
    assert produce["messaging.destination.name"] == batch["topic"]
    assert produce["messaging.destination.partition.id"] == str(batch["partition"])
    assert produce["messaging.client.id"] == batch["client_id"]
    assert produce["network.transport"] == "tcp"
    commits = [one for name, some in named.items() if name.startswith("OffsetCommit") for one in some]
    assert {one["messaging.operation.type"] for one in commits} == {"settle"}
    assert all("messaging.consumer.group.name" in one for one in commits)
    assert any(one["wirewitness.error.domain"] == "kafka" for one in commits if "error.type" in one)
    publish = [one for name, some in named.items() if name.startswith("publish ") for one in some]
    assert {one["messaging.system"] for one in publish} == {"mqtt"}
    assert {one.get("messaging.operation.type") for one in publish} == {"send", None}
    [command] = [
        one for one in named[f"find {find['collection']}"] if one["wirewitness.exchange_id"] == find["exchange_id"]
    ]
    assert (command["db.system.name"], command["db.operation.name"]) == ("mongodb", "find")
    assert (command["db.namespace"], command["db.query.text"]) == (find["database"], find["query_shape"])
    failed = [one for some in named.values() for one in some if "db.response.status_code" in one]
    assert failed
    assert all(one["db.response.status_code"] == str(one["wirewitness.error.code"]) for one in failed)


def test_what_has_no_answer_says_so(sent: Received) -> None:
    waiting = [span for span in sent.spans() if values(span)["wirewitness.status"] == "unanswered"]
    assert waiting
    for span in waiting:
        assert [event.name for event in span.events] == ["wirewitness.unanswered"]
        assert span.events[0].time_unix_nano == span.end_time_unix_nano >= span.start_time_unix_nano
        assert span.status.code == Status.STATUS_CODE_UNSET


def as_protobuf(line: bytes) -> ExportTraceServiceRequest:
    """A line, ids as the JSON mapping of protobuf has them."""
    value = json.loads(line)
    for span in (one for part in value["resourceSpans"] for scope in part["scopeSpans"] for one in scope["spans"]):
        for name in ("traceId", "spanId"):
            assert span[name] == span[name].lower()
            span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
        assert isinstance(span["startTimeUnixNano"], str)
        assert isinstance(span["kind"], int)
    return ParseDict(value, ExportTraceServiceRequest())


def test_the_json_is_what_an_endpoint_gets(sent: Received) -> None:
    """Line by line; and a second run makes the same bytes."""
    first, second = (run("otel", KAFKA, MQTT, MONGO, "--quiet") for _ in range(2))
    assert (first.returncode, first.stderr) == (0, b"")
    assert first.stdout == second.stdout
    assert [as_protobuf(line) for line in first.stdout.splitlines()] == sent.requests


def test_payload_and_values_stay_inside() -> None:
    with wirewitness.read(KAFKA, options=wirewitness.ReadOptions(payload=True), tables=["kafka_records"]) as analysis:
        rows = analysis.sql("select distinct value from kafka_records where length(value) > 6").to_pylist()
    written = run("otel", KAFKA, MONGO, "--quiet").stdout.decode()
    assert rows
    assert not [row["value"] for row in rows if row["value"] in written]
    shapes = [
        attribute["value"]["stringValue"]
        for line in written.splitlines()
        for part in json.loads(line)["resourceSpans"]
        for span in part["scopeSpans"][0]["spans"]
        for attribute in span["attributes"]
        if attribute["key"] == "db.query.text"
    ]
    assert any('"?number"' in shape for shape in shapes)


def test_resource_and_selection() -> None:
    env = {"OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=lab", "OTEL_EXPORTER_OTLP_HEADERS": "x-key=abc"}
    with receiver() as received:
        done = run("otel", MQTT, MONGO, "--protocol", "mqtt", "--service-name", "edge", "--quiet",
                   "--endpoint", f"{received.url}/v1/traces", **env)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert {values(span)["messaging.system"] for span in received.spans()} == {"mqtt"}
    resource = {one.key: one.value.string_value for one in received.requests[0].resource_spans[0].resource.attributes}
    assert (resource["service.name"], resource["deployment.environment.name"]) == ("edge", "lab")
    assert "service.instance.id" not in resource
    assert {headers["x-key"] for headers in received.headers} == {"abc"}


def test_a_receiver_that_is_busy_is_asked_again() -> None:
    with receiver([503]) as received:
        done = run("otel", MQTT, "--endpoint", received.url)
    assert done.returncode == 0
    assert len(received.paths) == 2
    assert done.stderr.decode().splitlines()[-1] == f"{len(received.spans()):,} spans sent"


def unused_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def last_line(stderr: bytes) -> str:
    text = stderr.decode()
    assert "Traceback" not in text
    [line] = [line for line in text.splitlines() if not line.startswith("note: ")]
    return line


def test_a_receiver_that_refuses() -> None:
    with receiver([200, 400]) as received:
        done = run("otel", KAFKA, MQTT, MONGO, "--endpoint", received.url.replace("//", "//me:secret@"))
    assert done.returncode == 2
    line = last_line(done.stderr)
    assert line.startswith(f"wirewitness: {received.url}/v1/traces did not take the spans: 400")
    assert line.endswith("(512 spans were sent before)")
    assert "secret" not in line


def test_nobody_listens() -> None:
    done = run("otel", MQTT, "--endpoint", f"http://127.0.0.1:{unused_port()}")
    assert done.returncode == 2
    assert "did not take the spans: Connection refused (0 spans were sent before)" in last_line(done.stderr)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--endpoint", "localhost:4318"), "write a URL such as http://localhost:4318"),
        (("--endpoint", "http://localhost:many"), "--endpoint http://localhost:many: "),
        (("--endpoint", "http://localhost", "--output", "x"), "exclude each other"),
    ],
    ids=["no URL", "no port", "both"],
)
def test_wrong_usage(arguments: tuple[str, ...], expected: str) -> None:
    done = run("otel", MQTT, *arguments)
    assert done.returncode == 2
    assert expected in done.stderr.decode()
