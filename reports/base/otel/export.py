"""Spans to an OTLP endpoint or to lines of OTLP JSON. In: lists of spans; out: how many went, or ExportError."""

from __future__ import annotations

import base64
import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from requests import RequestException

from wirewitness.analyser.base.words import json_text
from wirewitness.analyser.capture.privileges import Fence, confine, invoking_user, may, program_folders
from wirewitness.analyser.capture.program import Imports, import_all, readable
from wirewitness.reports.base.otel.bounded_session import BoundedSession

# The program that sends spans of a running capture gives up its rights. In: nothing. Out: a process that may read
# what it needs for sending, and open connections.
#
# Its rows are made of a stranger's bytes, and who captures is often root. It runs as the user who started it, or as
# nobody, where that user can read the program and what the SDK's settings name; else it stays who it is, without a
# right.

# Settings of the SDK, and of the libraries it sends with, that name files.
_SETTINGS = (
    *(
        f"OTEL_EXPORTER_OTLP_{signal}{kind}"
        for signal in ("", "TRACES_")
        for kind in ("CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY")
    ),
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NETRC",
)
_NETRC = ("~/.netrc", "~/_netrc")
# /etc/resolv.conf is often a link to here, and replaced as a whole.
_NAMES = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager")


def confined(imports: Imports) -> bool:
    """Give up every right but to send; True where the kernel fences files too. Before a second thread is started.

    imports: what the program may import later; imported now if it cannot be read afterwards. Raises OSError where the
    system refuses to take rights away.
    """
    named = [*_named()]
    user = invoking_user()
    if user is not None and not may(user, [*filter(Path.exists, program_folders()), *named], os.R_OK):
        user = None
    if not readable(user, imports):
        import_all(imports)
    return confine(user, Fence(read=[*named, *map(Path, _NAMES)], network=True))


def _named() -> Iterator[Path]:
    """The files that settings name and that are there."""
    for text in (*(os.environ.get(name, "") for name in _SETTINGS), *map(os.path.expanduser, _NETRC)):
        if text and os.path.exists(text):
            yield Path(text).absolute()


# Spans in one request, and in one line of a file.
BATCH_SPANS = 512
# How long one request is tried, repeats after refusals that may pass included.
TIMEOUT_S = 10.0
_TRACES_PATH = "/v1/traces"
# What the SDK logs of a try, and an error of the operating system in it.
_TRIED = re.compile(r"Transient error (?P<again>.+) encountered|batch code: (?P<refused>.+)", re.DOTALL)
_SYSTEM = re.compile(r"\[Errno -?\d+\] ([^'\")]+)")
# What follows the path of a URL in an error may be a secret.
_QUERY = re.compile(r"(with url: [^\s?]*)\?\S*")
_IDS = ("traceId", "spanId", "parentSpanId")


class ExportError(Exception):
    """An endpoint did not take spans; the text is one sentence. sent: spans that it took before."""

    def __init__(self, sentence: str, sent: int) -> None:
        super().__init__(sentence)
        self.sent = sent


def endpoint_url(text: str) -> str:
    """The URL that spans are posted to: of a base URL the path of traces. ValueError for what is no http(s) URL."""
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("write a URL such as http://localhost:4318")
    _ = parts.port  # ValueError where it is no number
    return urlunsplit(parts._replace(path=_TRACES_PATH)) if parts.path in {"", "/"} else text


def send(lists: Iterable[Sequence[ReadableSpan]], endpoint: str, *, timeout_s: float = TIMEOUT_S) -> int:
    """Post all spans; how many there were. Raises ExportError at the first request that is not taken in time.

    Headers, certificates and compression are the SDK's settings (OTEL_EXPORTER_OTLP_HEADERS and so on).
    """
    sent = 0
    with _said() as said, BoundedSession(timeout_s) as session:
        try:
            exporter = OTLPSpanExporter(endpoint=endpoint, timeout=timeout_s, session=session)
        except ValueError as error:
            raise ExportError(f"a setting of the SDK is wrong: {_one_line(str(error))}", 0) from error
        try:
            for some in _batched(lists):
                if not _took(exporter, some):
                    why = session.trouble or _reason(said)
                    raise ExportError(f"{_shown(endpoint)} did not take the spans: {why}", sent)
                sent += len(some)
        finally:
            exporter.shutdown()  # type: ignore[no-untyped-call]
    return sent


def _took(exporter: OTLPSpanExporter, some: Sequence[ReadableSpan]) -> bool:
    try:
        return exporter.export(some) is SpanExportResult.SUCCESS
    except RequestException:  # older versions of the SDK let it through
        return False


def json_lines(lists: Iterable[Sequence[ReadableSpan]]) -> Iterator[bytes]:
    """Lines, each a TracesData in the JSON mapping of OTLP: ids are hexadecimal, enums are numbers."""
    for some in _batched(lists):
        value = MessageToDict(encode_spans(some), use_integers_for_enums=True)
        for resource in value["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    for one in (span, *span.get("links", ())):
                        one.update({name: _hexadecimal(one[name]) for name in _IDS if name in one})
        yield json_text(value, separators=(",", ":")).encode() + b"\n"


def _hexadecimal(text: str) -> str:
    return base64.b64decode(text).hex()


def _batched(lists: Iterable[Sequence[ReadableSpan]]) -> Iterator[list[ReadableSpan]]:
    waiting: list[ReadableSpan] = []
    for some in lists:
        waiting += some
        while len(waiting) >= BATCH_SPANS:
            yield waiting[:BATCH_SPANS]
            del waiting[:BATCH_SPANS]
    if waiting:
        yield waiting


def _shown(endpoint: str) -> str:
    """The endpoint without user and password."""
    parts = urlsplit(endpoint)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return urlunsplit(parts._replace(netloc=host if parts.port is None else f"{host}:{parts.port}", query=""))


def _reason(said: list[str]) -> str:
    """Why, in a few words: what the exporter says of its last try."""
    for text in reversed(said):
        if tried := _TRIED.search(text):
            system = _SYSTEM.search(tried[0])
            return system[1] if system else _one_line(tried["again"] or tried["refused"])
    return _one_line(said[-1]) if said else "no reason given"


def _one_line(text: str) -> str:
    return _QUERY.sub(r"\1", " ".join(text.split()))


class _Listener(logging.Handler):
    """Keeps what the exporter says in a list, in place of printing it."""

    def __init__(self, said: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps the text."""
        self._said[:] = [*self._said[-9:], record.getMessage()]


@contextmanager
def _said() -> Iterator[list[str]]:
    """The last things that the SDK logs meanwhile; nothing of it reaches standard error."""
    said: list[str] = []
    listener = _Listener(said)
    loggers: list[Any] = [logging.getLogger("opentelemetry"), logging.getLogger("urllib3")]
    before = [logger.propagate for logger in loggers]
    for logger in loggers:
        logger.addHandler(listener)
        logger.propagate = False
    try:
        yield said
    finally:
        for logger, propagate in zip(loggers, before, strict=True):
            logger.removeHandler(listener)
            logger.propagate = propagate
