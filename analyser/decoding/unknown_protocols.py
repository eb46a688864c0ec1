"""What the first bytes of a side are where they are none of the protocols that are decoded: TLS or HTTP.

In: first bytes. Out: a word for them. Whoever speaks HTTP or TLS to a port of something else is told from it.
Sources: RFC 8446 (records), RFC 9112 (request and status line).
"""

from __future__ import annotations

import re

TLS, HTTP = "tls", "http"
_HTTP = re.compile(
    rb"(?:GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|CONNECT|TRACE) [\x21-\x7e]|HTTP/[0-9]\.[0-9] [1-5][0-9]{2}"
    rb"|PRI \* HTTP/2"
)
_HELLO = re.compile(rb"\x16\x03[\x00-\x04]..[\x01\x02]", re.DOTALL)
_ALERT = re.compile(rb"\x15\x03[\x00-\x04]\x00\x02[\x01\x02]", re.DOTALL)


def opening(head: bytes) -> str | None:
    """`tls` or `http`, as the first bytes of a stream tell; None for anything else."""
    if _HTTP.match(head):
        return HTTP
    if _HELLO.match(head) or _ALERT.match(head):
        return TLS
    return None
