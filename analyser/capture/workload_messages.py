"""Questions about identities and their answers, between the program that captures and the one that looks identities up.

In: values. Out: bytes of a pipe. Questions are of one size and hold nothing but numbers.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import NamedTuple

from wirewitness.analyser.capture.workloads.kernel.lookup import Answer, LocalIdentity
from wirewitness.analyser.capture.workloads.kernel.sock_diag import End

_QUESTION = struct.Struct("=IB16sH16sH")  # number, bytes of an address, the low end, the high end
_ANSWER = struct.Struct("=IBH")  # number of the question, kind, bytes that follow
QUESTION_BYTES = _QUESTION.size
_LOW, _HIGH, _LOW_SETTLED, _HIGH_SETTLED, _REMARK = range(5)
_MOST_REMARK_BYTES = 1000


class Question(NamedTuple):
    """Who is at both ends of a connection?"""

    number: int
    low: End
    high: End


def question_bytes(one: Question) -> bytes:
    """A question as it is sent."""
    low, high = one.low, one.high
    return _QUESTION.pack(one.number, len(low.address), low.address, low.port, high.address, high.port)


def questions(data: bytes) -> Iterator[Question]:
    """The questions in whole pieces of QUESTION_BYTES."""
    for number, size, low, low_port, high, high_port in _QUESTION.iter_unpack(data):
        yield Question(number, End(low[:size], low_port), End(high[:size], high_port))


def answer_bytes(one: Answer) -> bytes:
    """An answer as it is sent."""
    if one.identity is None:
        return _ANSWER.pack(one.question, _HIGH_SETTLED if one.is_high else _LOW_SETTLED, 0)
    body = json.dumps(one.identity).encode()
    return _ANSWER.pack(one.question, _HIGH if one.is_high else _LOW, len(body)) + body


def remark_bytes(text: str) -> bytes:
    """A line for people as it is sent."""
    body = text.encode()[:_MOST_REMARK_BYTES]
    return _ANSWER.pack(0, _REMARK, len(body)) + body


def answers(data: bytes) -> tuple[list[Answer | str], bytes]:
    """The whole answers and remarks, and what is left of the data."""
    found: list[Answer | str] = []
    at = 0
    while at + _ANSWER.size <= len(data):
        number, kind, length = _ANSWER.unpack_from(data, at)
        end = at + _ANSWER.size + length
        if end > len(data):
            break
        body = data[at + _ANSWER.size : end]
        if kind == _REMARK:
            found.append(body.decode("utf-8", "replace"))
        else:
            is_high = kind in (_HIGH, _HIGH_SETTLED)
            found.append(Answer(number, is_high, LocalIdentity(*json.loads(body)) if body else None))
        at = end
    return found, data[at:]
