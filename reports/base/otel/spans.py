"""Batches of exchanges to spans of the OpenTelemetry SDK. In: Arrow batches, a resource; out: spans, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import pyarrow as pa
from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.semconv._incubating.attributes import (
    container_attributes,
    host_attributes,
    k8s_attributes,
    process_attributes,
)
from opentelemetry.semconv._incubating.attributes import messaging_attributes as messaging
from opentelemetry.semconv.attributes import db_attributes as db
from opentelemetry.semconv.attributes import error_attributes, network_attributes, server_attributes
from opentelemetry.semconv.schemas import Schemas
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from wirewitness.reports.base.otel.protocols import TOLD
from wirewitness.reports.base.otel.span_attributes import OWN, Row, Told

# One exchange to the name, attributes and status of a span, by the semantic conventions of the installed package.
#
# In: a row of exchanges, with or without columns of other tables. Out: a `Span`, still without the SDK's types.
# Payload is never in it, and a statement is its query shape, without values. What the conventions have no name for is
# under `wirewitness.`: error codes with the protocol whose codes they are, and where to find the packets.

Value = str | int | bool


class Span(NamedTuple):
    """What a span says. Times are Unix ns. error: what went wrong. event: what there was instead of an answer.

    span_id is made of the exchange's id, which is made of content: a capture has the same ones always. trace_id: of
    what the application says of its messages where that is one trace, and `parent` is its span where that is one, too;
    else made likewise. links: trace and span of every message that says so.
    """

    name: str
    trace_id: int
    span_id: int
    start_ns: int
    end_ns: int
    attributes: dict[str, Value]
    error: str | None
    event: str | None
    parent: int | None = None
    links: tuple[tuple[int, int], ...] = ()


def span(row: Row) -> Span:
    """The span of one exchange."""
    status, start_ns, told = row["status"], row["ts"], TOLD.get(row["protocol"])
    made: dict[str, Any] = {
        server_attributes.SERVER_ADDRESS: row["server_address"],
        server_attributes.SERVER_PORT: row["server_port"],
        network_attributes.NETWORK_PEER_ADDRESS: row["server_address"],
        network_attributes.NETWORK_PEER_PORT: row["server_port"],
        network_attributes.NETWORK_LOCAL_ADDRESS: row["client_address"],
        network_attributes.NETWORK_LOCAL_PORT: row["client_port"],
        network_attributes.NETWORK_TRANSPORT: network_attributes.NetworkTransportValues.TCP.value,
        network_attributes.NETWORK_PROTOCOL_NAME: row["protocol"],
        **_client(row),
        **(told.attributes(row) if told else _other(row)),
        **_errors(row, told),
        f"{OWN}status": status,
        f"{OWN}exchange_id": row["exchange_id"],
        f"{OWN}flow_id": row["flow_id"],
        f"{OWN}direction": row["direction"],
        f"{OWN}file": row["request_file"],
        f"{OWN}request.packet": row["request_packet"],
        f"{OWN}response.packet": row["response_packet"],
        f"{OWN}request.bytes": row["request_bytes"],
        f"{OWN}response.bytes": row["response_bytes"],
        f"{OWN}awaitable": row["awaitable"] or None,
    }
    attributes = {name: value for name, value in made.items() if value is not None}
    links = tuple(filter(None, map(_context, row.get("traceparents") or ())))
    traces = {trace_id for trace_id, _ in links}
    return Span(
        _name(row, attributes),
        traces.pop() if len(traces) == 1 else _identifier(row["exchange_id"], 16),
        _identifier(row["exchange_id"], 8),
        start_ns,
        _end_ns(row),
        attributes,
        _description(row) if _is_error(row, told) else None,
        _EVENTS.get(status),
        links[0][1] if len(links) == 1 else None,
        links,
    )


def _is_error(row: Row, told: Told | None) -> bool:
    is_ordinary = told is not None and (row["operation"], row["error_code"]) in told.no_errors
    return row["status"] == "error" and not is_ordinary


def _context(traceparent: str | None) -> tuple[int, int] | None:
    """Trace and span of a traceparent (W3C Trace Context, 3.2); None for one that is not valid."""
    if traceparent is None:
        return None
    version, trace_id, span_id, _ = traceparent.split("-")
    found = int(trace_id, 16), int(span_id, 16)
    return found if all(found) and version != "ff" else None


# What there is instead of an answer, as an event at the span's end.
_EVENTS = {"unanswered": f"{OWN}unanswered", "orphan": f"{OWN}request_not_captured"}


def _end_ns(row: Row) -> int:
    """Time of the response; where none came, until when one would have been seen."""
    start: int = row["ts"]
    end = row["ts_response"]
    if end is None and row["status"] == "unanswered":
        end = row.get("observed_until")
    return max(start, start if end is None else end)


def _identifier(exchange_id: str, size: int) -> int:
    """An id of that many bytes; never 0, which stands for none."""
    return int.from_bytes(blake2b(exchange_id.encode(), digest_size=size).digest()) or 1


def _name(row: Row, attributes: Mapping[str, Value]) -> str:
    """Operation and what it is done to: a topic, a collection, a database."""
    operation = attributes.get(db.DB_OPERATION_NAME) or attributes.get(messaging.MESSAGING_OPERATION_NAME)
    target = (
        attributes.get(messaging.MESSAGING_DESTINATION_NAME)
        or attributes.get(db.DB_COLLECTION_NAME)
        or attributes.get(db.DB_NAMESPACE)
    )
    return " ".join(str(part) for part in (operation or row["operation"] or row["protocol"], target) if part)


def _client(row: Row) -> dict[str, Any]:
    """Who sent the request, where a capture or a file says: a span is the client's. Streams know less of it."""
    process = row.get("client_process")
    name = process.rpartition("(")[0].strip() or None if process and process.endswith(")") else process
    return {
        process_attributes.PROCESS_PID: row.get("client_pid"),
        process_attributes.PROCESS_EXECUTABLE_NAME: name,
        container_attributes.CONTAINER_NAME: row.get("client_container"),
        k8s_attributes.K8S_POD_NAME: row.get("client_pod"),
        k8s_attributes.K8S_NAMESPACE_NAME: row.get("client_namespace"),
        host_attributes.HOST_NAME: row.get("client_host"),
    }


def _other(row: Row) -> dict[str, Any]:
    return {f"{OWN}operation": row["operation"]}


def _errors(row: Row, told: Told | None) -> dict[str, Any]:
    """error.type only where it failed, as the conventions want; the code, its name and whose code it is."""
    code = row["error_code"]
    if not code:
        return {}
    version = row["version"] if told is not None and told.codes_by_version else None
    domain = " ".join(filter(None, (row["protocol"], version)))
    own = {f"{OWN}error.code": code, f"{OWN}error.name": row["error_name"], f"{OWN}error.domain": domain}
    if _is_error(row, told):
        own[error_attributes.ERROR_TYPE] = row["error_name"] or str(code)
    return own


def _description(row: Row) -> str:
    code, name = row["error_code"], row["error_name"]
    if code is None:
        return str(name or "error")
    return f"{name} ({code})" if name else f"error {code}"


SCOPE_NAME = "wirewitness"
DEFAULT_SERVICE = "wirewitness"
# Of the conventions whose names are used: the newest that the installed package knows.
SCHEMA_URL = list(Schemas)[-1].value


def _own_version() -> str | None:
    try:
        return version("wirewitness")
    except PackageNotFoundError:
        return None


# Made once: without privileges a process may not be able to read which version is installed.
_SCOPE = InstrumentationScope(SCOPE_NAME, _own_version(), SCHEMA_URL)


def resource(service_name: str = DEFAULT_SERVICE) -> Resource:
    """What the spans are said to come from; OTEL_RESOURCE_ATTRIBUTES adds to it, as with any program.

    Nothing in it differs from run to run: an instance's id is only there when the environment names one.
    """
    made = Resource.create({SERVICE_NAME: service_name}, SCHEMA_URL)
    given = OTELResourceDetector().detect().attributes
    kept = {name: value for name, value in made.attributes.items() if name != SERVICE_INSTANCE_ID or name in given}
    return Resource(kept, SCHEMA_URL)


def spans(batches: Iterable[pa.RecordBatch], source: Resource) -> Iterator[list[ReadableSpan]]:
    """A list of spans for each batch of the exchanges table that has rows.

    Columns of other tables (`reports.base.otel.exchanges`) may be there or not; unknown is left out.
    """
    for batch in batches:
        if batch.num_rows:
            yield [_readable(span(row), source) for row in _rows(batch)]


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows with times in Unix ns."""
    columns = [
        column.cast(pa.timestamp("ns", tz="UTC")).cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        for column in batch.columns
    ]
    rows: list[dict[str, Any]] = pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist()
    return rows


def _readable(made: Span, source: Resource) -> ReadableSpan:
    sampled = TraceFlags(TraceFlags.SAMPLED)
    context = SpanContext(made.trace_id, made.span_id, is_remote=False, trace_flags=sampled)
    links = [Link(SpanContext(*link, is_remote=True, trace_flags=sampled)) for link in made.links]
    parent = None if made.parent is None else links[0].context
    return ReadableSpan(
        made.name,
        context=context,
        parent=parent,
        links=links,
        resource=source,
        attributes=made.attributes,
        events=() if made.event is None else (Event(made.event, timestamp=made.end_ns),),
        kind=SpanKind.CLIENT,
        status=Status(StatusCode.UNSET) if made.error is None else Status(StatusCode.ERROR, made.error),
        start_time=made.start_ns,
        end_time=made.end_ns,
        instrumentation_scope=_SCOPE,
    )
