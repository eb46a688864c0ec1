"""Which protocol a connection speaks that is joined in the middle of a long answer, in whatever batches."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest

from tests.support.wire import Talk, decode
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.inputs import analysis_of
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.registry import PROTOCOLS

TABLES = ["flows", "exchanges"]
SEGMENT = 1400
FETCH = struct.pack(">hhih", 1, 4, 18, 3) + b"app" + struct.pack(">iiiibi", -1, 500, 1, 1 << 20, 0, 0)
# The answer to the request before the capture: topic t, partition 0, with records that are none.
ANSWER = struct.pack(">iii", 17, 0, 1) + b"\0\1t" + struct.pack(">iihqqii", 1, 0, 0, 9, 9, 0, 200_000) + bytes(200_000)
NEXT = struct.pack(">iii", 18, 0, 0)


def framed(message: bytes) -> bytes:
    return struct.pack(">i", len(message)) + message


def joined(before_request: int) -> Talk:
    """As many bytes of an answer, then a Fetch and its answer."""
    made, answer = Talk(), framed(ANSWER)[-before_request:]
    for start in range(0, len(answer), SEGMENT):
        made.send(False, start, answer[start : start + SEGMENT], ack=0)
    made.send(True, 0, framed(FETCH), ack=len(answer))
    return made.send(False, len(answer), framed(NEXT), ack=len(framed(FETCH)))


@pytest.mark.parametrize("block_bytes", [1 << 20, 3000], ids=["at once", "in parts"])
@pytest.mark.parametrize("before_request", [1000, 70_000, len(framed(ANSWER))])
def test_the_request_after_a_long_answer_tells(before_request: int, block_bytes: int) -> None:
    decoded = decode(joined(before_request).packets, TABLES, block_bytes=block_bytes)
    with analysis_of(decoded, TABLES, ReadOptions(), PROTOCOLS.values()) as analysis:
        (flow,) = analysis.table("flows").to_dict("records")
        exchanges = analysis.table("exchanges")
    assert (flow["protocol"], flow["client_port"]) == ("kafka", 40_000)
    assert (exchanges["status"] == "ok").sum() == 1


def test_a_side_that_stays_alone_is_given_up() -> None:
    limits = Limits(max_probe_bytes=5000, max_one_sided_bytes=50_000)
    decoded = decode(joined(100_000).packets, TABLES, limits=limits)
    with analysis_of(decoded, TABLES, ReadOptions(), PROTOCOLS.values()) as analysis:
        (protocol,) = analysis.table("flows")["protocol"].isna()
    assert protocol


@pytest.mark.parametrize(("port", "others"), [(9092, 0), (7777, 2)])
def test_others_are_asked_unless_the_protocol_of_the_port_is_sure(
    monkeypatch: pytest.MonkeyPatch, port: int, others: int
) -> None:
    asked: set[str] = set()
    for name, dissector in PROTOCOLS.items():

        def probe(*heads: Any, name: str = name, real: Any = dissector.probe) -> Any:
            asked.add(name)
            return real(*heads)

        monkeypatch.setitem(PROTOCOLS, name, replace(dissector, probe=probe))
    made = Talk(server=("10.0.0.2", port)).handshake().send(True, 0, framed(FETCH))
    decode(made.send(False, 0, framed(NEXT), ack=len(framed(FETCH))).packets, TABLES)
    assert len(asked - {"kafka"}) == others
