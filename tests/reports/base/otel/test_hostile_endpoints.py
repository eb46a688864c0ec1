"""Endpoints that answer without end, byte by byte, or send on to elsewhere: bounded bytes and time, and a sentence."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.support.hostile_endpoint import saying
from tests.support.otlp_receiver import receiver
from wirewitness.reports.base.otel.export import BATCH_SPANS, ExportError, endpoint_url, send

OK = b"HTTP/1.1 200 OK\r\n"
ELSEWHERE = b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n"
PIECE = b"x" * (1 << 16)
# More than the buffers of a connection hold; who reads all of it takes all of it.
PIECES = 2_000
MOST_BYTES = 32 << 20
ENDLESS = {
    "without a length": OK + b"\r\n",
    "with a length": OK + b"Content-Length: 99999999999\r\n\r\n",
    "in a redirect": ELSEWHERE + b"\r\n",
    "in an error": b"HTTP/1.1 400 Bad Request\r\n\r\n",
}
# A minute of them.
DRIPS = 1_200
DRIPPING = {
    "the body": [OK + b"Content-Length: 100000\r\n\r\n", *[b"x"] * DRIPS],
    "a body that ends with the connection": [OK + b"Connection: close\r\n\r\n", *[b"x"] * DRIPS],
    "a header": [OK + b"X: ", *[b"x"] * DRIPS],
    "the status": [b"HTTP/1.1 200 ", *[b"x"] * DRIPS],
    # A ServerHello of 16 kB.
    "TLS": [b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", *[b"x"] * DRIPS],
}


def some_spans(number: int) -> list[ReadableSpan]:
    made = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(made))
    tracer = provider.get_tracer("test")
    for _ in range(number):
        tracer.start_span("publish").end()
    return list(made.get_finished_spans())


@pytest.mark.parametrize("name", ENDLESS)
def test_of_an_endless_answer_little_is_read(name: str) -> None:
    with saying([ENDLESS[name], *[PIECE] * PIECES]) as said:
        if ENDLESS[name].startswith(OK):
            assert send([some_spans(3)], endpoint_url(said.url)) == 3
        else:
            with pytest.raises(ExportError, match=r"did not take the spans: [34]0"):
                send([some_spans(3)], endpoint_url(said.url))
    assert said.asked == 1
    assert said.sent_bytes < MOST_BYTES < PIECES * len(PIECE)


@pytest.mark.parametrize("name", DRIPPING)
def test_the_time_of_a_request_is_bounded_as_a_whole(name: str) -> None:
    """However little each piece lets one wait."""
    with saying(DRIPPING[name], pause_s=0.05) as said:
        url = said.url.replace("http:", "https:") if name == "TLS" else said.url
        with pytest.raises(ExportError, match=r"did not take the spans: no whole answer in 0.3 s"):
            send([some_spans(3)], endpoint_url(url), timeout_s=0.3)
        pieces = said.sent_bytes - len(DRIPPING[name][0])
    assert pieces < DRIPS // 2


def test_a_redirect_is_told_and_not_followed() -> None:
    with saying([OK + b"Content-Length: 0\r\n\r\n"]) as other:
        location = f"Location: {other.url}/v1/traces\r\nContent-Length: 0\r\n\r\n".encode()
        for status in (b"301 Moved", b"302 Found", b"307 Temporary", b"308 Permanent", b"304 Not Modified"):
            with saying([b"HTTP/1.1 " + status + b"\r\n" + location]) as said:
                with pytest.raises(ExportError, match="sends on to elsewhere: name the URL that takes spans") as failed:
                    send([some_spans(3)], endpoint_url(said.url))
                assert (said.asked, failed.value.sent) == (1, 0)
        assert other.asked == 0


def test_a_connection_is_used_again() -> None:
    with receiver() as received:
        assert send([some_spans(BATCH_SPANS * 3)], endpoint_url(received.url)) == BATCH_SPANS * 3
    assert [len(request.resource_spans) for request in received.requests] == [1, 1, 1]
