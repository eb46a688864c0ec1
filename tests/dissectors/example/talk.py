"""Conversations of the example protocol for the properties that every protocol has."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from tests.dissectors.properties import Case, Turn
from tests.support.example_encode import frame, request, response
from wirewitness.dissectors.core.inspect import Asked
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from wirewitness.dissectors.example.dissector import EXAMPLE

_payload = st.one_of(st.binary(max_size=40), st.just(b"\xca\xfe\x01\x01"))
_sent = st.builds(lambda data: Turn(CLIENT_TO_SERVER, request(data)), _payload)
_pipelined = st.builds(lambda one, two: Turn(CLIENT_TO_SERVER, request(one) + request(two)), _payload, _payload)
_answered = st.builds(lambda data: Turn(SERVER_TO_CLIENT, response(data)), _payload)
_unknown = st.builds(lambda data: Turn(CLIENT_TO_SERVER, frame(9, data, version=3)), _payload)


def _long() -> Iterator[Turn]:
    for number in range(300):
        yield Turn(CLIENT_TO_SERVER, request(b"question %d" % number * (number % 7)))
        yield Turn(SERVER_TO_CLIENT, response(b"answer %d" % number * (number % 5)))


EXAMPLE_CASE = Case(
    EXAMPLE,
    st.tuples(_sent, st.lists(st.one_of(_sent, _pipelined, _answered, _unknown), max_size=8)).map(
        lambda parts: [parts[0], *parts[1]]
    ),
    list(_long()),
    (Asked("request", "Call", "1"), Asked(None, None, None)),
)
