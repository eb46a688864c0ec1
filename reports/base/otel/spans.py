"""Batches of exchanges to spans of the OpenTelemetry SDK. In: Arrow batches, a resource; out: spans, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pyarrow as pa
from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.semconv.schemas import Schemas
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from wirewitness.reports.base.otel.attributes import Span, span

SCOPE_NAME = "wirewitness"
DEFAULT_SERVICE = "wirewitness"
# Of the conventions whose names are used: the newest that the installed package knows.
SCHEMA_URL = list(Schemas)[-1].value


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
    scope = InstrumentationScope(SCOPE_NAME, _own_version(), SCHEMA_URL)
    for batch in batches:
        if batch.num_rows:
            yield [_readable(span(row), source, scope) for row in _rows(batch)]


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows with times in Unix ns."""
    columns = [
        column.cast(pa.timestamp("ns", tz="UTC")).cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        for column in batch.columns
    ]
    rows: list[dict[str, Any]] = pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist()
    return rows


def _readable(made: Span, source: Resource, scope: InstrumentationScope) -> ReadableSpan:
    context = SpanContext(made.trace_id, made.span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return ReadableSpan(
        made.name,
        context=context,
        resource=source,
        attributes=made.attributes,
        events=() if made.event is None else (Event(made.event, timestamp=made.end_ns),),
        kind=SpanKind.CLIENT,
        status=Status(StatusCode.UNSET) if made.error is None else Status(StatusCode.ERROR, made.error),
        start_time=made.start_ns,
        end_time=made.end_ns,
        instrumentation_scope=scope,
    )


def _own_version() -> str | None:
    try:
        return version("wirewitness")
    except PackageNotFoundError:
        return None
