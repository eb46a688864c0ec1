"""`wirewitness otel`: exchanges as OpenTelemetry spans. In: captures; out: OTLP to an endpoint, or lines of JSON."""

from __future__ import annotations

from contextlib import ExitStack
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from wirewitness.app.cli.output import check_output, flush_output, result_sink
from wirewitness.app.shared.failure import CallerError, Status, say
from wirewitness.app.shared.live_options import DurationType, PortsType, capture_job
from wirewitness.app.shared.options import output_option, reading_options
from wirewitness.app.shared.reading import open_analysis, status_of

if TYPE_CHECKING:
    from wirewitness.analyser.analysis.analysis import Analysis
    from wirewitness.analyser.capture.capturing import CaptureJob


# Rows of a running capture that are kept for the exchanges to come.
_KEEP_S = 900.0


@click.command()
@click.argument("captures", nargs=-1, metavar="CAPTURE... | -i IFACE")
@click.option("-i", "--interface", "interfaces", multiple=True, metavar="IFACE",
              help="Capture on this interface (Linux) in place of reading captures. Repeatable.")  # fmt: skip
@click.option("--ports", type=PortsType(), metavar="A,B", help="With -i: only TCP packets from or to these ports.")
@click.option("--duration", type=DurationType(), metavar="TIME", help="With -i: stop after this time: 90s, 10m, 2h.")
@click.option("--endpoint", metavar="URL", help="Send to this OTLP/HTTP receiver, such as http://localhost:4318.")
@click.option("--service-name", default="wirewitness", show_default=True, metavar="NAME",
              help="The resource's service.name; OTEL_RESOURCE_ATTRIBUTES adds others.")  # fmt: skip
@output_option
@reading_options
def otel(
    *,
    captures: tuple[str, ...],
    interfaces: tuple[str, ...],
    ports: tuple[int, ...] | None,
    duration: float | None,
    endpoint: str | None,
    service_name: str,
    output: str | None,
    **reading: Any,
) -> Status:
    """Make a span of every exchange of CAPTURE... or of what an interface brings, by the semantic conventions for
    messaging and databases.

    Times are the capture's, ids are made of content: sending a capture again makes the same spans. Messages whose
    headers or user properties have a traceparent are linked to the application's spans. Payloads and values of queries
    are never in a span. Without --endpoint, lines of OTLP JSON are written. Headers and certificates for the
    endpoint are set as for any OpenTelemetry program: OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_CERTIFICATE.

    \b
    Examples:
      wirewitness otel incident.pcapng --endpoint http://localhost:4318
      wirewitness otel incident.pcapng --protocol mongo --output spans.jsonl
      wirewitness otel -i eth0 --ports 9092 --endpoint http://localhost:4318
      wirewitness otel incident.pcapng --from 2026-11-20T11:23:00 --to 2026-11-20T11:24:00 | head -1
    """
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.exporter") is None:
        from wirewitness.analyser.base.extras import how_to_install

        raise CallerError(f"OpenTelemetry is not installed; {how_to_install('otel')}")
    if endpoint is not None and output is not None:
        raise click.UsageError("--endpoint and --output exclude each other")
    if bool(captures) == bool(interfaces):
        raise click.UsageError("name captures, or interfaces with -i")
    if (ports or duration) and not interfaces:
        raise click.UsageError("--ports and --duration are for interfaces (-i)")
    if interfaces and (reading["from_ns"] is not None or reading["to_ns"] is not None):
        raise click.UsageError("--from and --to are for captures, not for interfaces (-i)")
    check_output(output, captures)
    from wirewitness.reports.base.otel.exchanges import TABLES

    url = None if endpoint is None else _url(endpoint)
    if interfaces:
        job = capture_job(interfaces, "", ports or (), None, None)
        return _live(job, reading, duration, url, service_name, output)
    with open_analysis(captures, TABLES, {**reading, **_headers(captures)}) as analysis:
        if url is None:
            _write(analysis, service_name, output)
        else:
            _send(analysis, service_name, url, quiet=reading["quiet"])
        return status_of(analysis)


def _headers(captures: tuple[str, ...]) -> dict[str, Any]:
    """Options by which headers of records are read, which say of which trace they are; a dataset has them or not."""
    from wirewitness.analyser.archive.dataset.place import one_dataset

    return {} if captures and one_dataset(captures) is not None else {"payload": True, "payload_columns": ("headers",)}


def _url(endpoint: str) -> str:
    from wirewitness.reports.base.otel.export import endpoint_url

    try:
        return endpoint_url(endpoint)
    except ValueError as error:
        raise click.UsageError(f"--endpoint {endpoint}: {error}") from error


def _write(analysis: Analysis, service_name: str, output: str | None) -> None:
    from wirewitness.reports.base.otel.exchanges import batches
    from wirewitness.reports.base.otel.export import json_lines
    from wirewitness.reports.base.otel.spans import resource, spans

    with result_sink(output) as write:
        for line in json_lines(spans(batches(analysis), resource(service_name))):
            write(line)


def _send(analysis: Analysis, service_name: str, url: str, *, quiet: bool) -> None:
    from wirewitness.reports.base.otel.exchanges import batches
    from wirewitness.reports.base.otel.export import ExportError, send
    from wirewitness.reports.base.otel.spans import resource, spans

    try:
        sent = send(spans(batches(analysis), resource(service_name)), url)
    except ExportError as error:
        raise CallerError(f"{error} ({error.sent:,} spans were sent before)") from error
    if not quiet:
        say(f"{sent:,} spans sent")


def _live(
    job: CaptureJob, reading: dict[str, Any], duration: float | None, url: str | None, service_name: str,
    output: str | None,
) -> Status:  # fmt: skip
    from wirewitness.app.cli.live import run_live
    from wirewitness.app.cli.otel_live import SpanOutput, line_writer
    from wirewitness.app.cli.otel_sender import SenderProgram
    from wirewitness.reports.base.otel.exchanges import TABLES
    from wirewitness.reports.base.otel.spans import resource

    chosen = {name: reading[name] for name in ("decode_as", "protocol", "enable", "topic_ids", "keylogs", "hosts")}
    chosen |= _headers(())
    with result_sink(output) as write, ExitStack() as opened:
        sender = SenderProgram(service_name, url) if url is not None else None
        if sender is not None:
            opened.callback(sender.kill)
        take = sender.take if sender is not None else line_writer(resource(service_name), write, flush_output)
        news = SpanOutput(take)
        read, _ = run_live(job, None, chosen, _KEEP_S, duration, news, tables=("captures", *TABLES))
        with read as analysis:
            if not analysis.arrow("captures").num_rows:
                raise CallerError(" ".join(unread.reason for unread in analysis.unread) or "no packet was captured")
            news.finish(analysis)
            if sender is not None:
                done = sender.close()
                if not reading["quiet"]:
                    say(f"{done.sent:,} spans sent" + (f", {done.lost:,} lost" if done.lost else ""))
            return status_of(analysis)
