"""Whatever a protocol is, inside WebSocket it gives the same rows, but for the places of its messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.dissectors.carriers.test_upgrade import END, REQUEST, RESPONSE
from tests.dissectors.carriers.test_websocket import MASK, frame
from tests.dissectors.properties import Case, Turn, decoded
from tests.dissectors.test_properties import CASES
from tests.support.shares import examples
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Decoder

# Fields that tell where something is in the stream, or what that travels in.
PLACES = ("stream_offset", "request_offset", "response_offset", "first_offset", "span", "transport")


def carried(turns: Sequence[Turn], cuts: Sequence[int]) -> list[Turn]:
    """The turns in frames, each turn in several that begin anywhere. Packets stay those of the turns."""
    found = [Turn(CLIENT_TO_SERVER, REQUEST + END, packet=1), Turn(SERVER_TO_CLIENT, RESPONSE + END, packet=1)]
    for number, turn in enumerate(turns):
        content, mask = turn.data or b"", MASK if turn.direction == CLIENT_TO_SERVER else None
        edges = sorted({0, len(content), *(cut % (len(content) + 1) for cut in cuts)})
        pieces = [content[start:end] for start, end in pairwise(edges)]
        ping = frame(b"", opcode=9, mask=mask) if number % 3 == 0 else b""
        frames = [
            frame(piece, opcode=2 if place == 0 else 0, fin=place == len(pieces) - 1, mask=mask)
            for place, piece in enumerate(pieces)
        ]
        found.append(turn._replace(data=ping + b"".join(frames)))
    return found


def without_places(case: Case, rows: dict[str, list[tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    fields = case.fields()
    return {
        table: [
            tuple(value for name, value in zip(fields[table], row, strict=True) if name not in PLACES)
            for row in found
            if not (table == "expert_infos" and "websocket" in row)
        ]
        for table, found in rows.items()
    }


@pytest.mark.parametrize("protocol", list(CASES))
@examples(25, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_the_rows_are_the_same(protocol: str, data: st.DataObject) -> None:
    case = CASES[protocol]
    turns = [turn._replace(packet=number) for number, turn in enumerate(data.draw(case.talk), 1)]
    cuts = data.draw(st.lists(st.integers(1, 500), max_size=3))
    plain, inside = decoded(case, turns), decoded(case, carried(turns, cuts))
    ours, theirs = without_places(case, inside), without_places(case, plain)
    for table in theirs:
        assert ours[table] == theirs[table]
    for direction in (0, 1):
        offsets = [row[1] for row in inside["messages"] if row[0] == direction]
        assert offsets == sorted(set(offsets))


@pytest.mark.parametrize(("inside", "expected"), [(False, ("tcp", True)), (True, ("websocket", True))])
def test_a_decoder_is_told_what_it_travels_in(inside: bool, expected: tuple[str, bool]) -> None:
    case = CASES["example"]
    told: list[tuple[str, bool]] = []

    def decoder(limits: Limits, options: DecodeOptions) -> Decoder:
        told.append((options.transport, options.whole))
        return case.dissector.decoder(limits, options)

    turns = case.long_talk[:4]
    curious = replace(case, dissector=replace(case.dissector, decoder=decoder))
    decoded(curious, carried(turns, []) if inside else turns)
    assert told == [expected]
