"""What must hold for every protocol, whatever its bytes mean.

In: a `Case`, which says how a protocol's decoders are made up. Checked through the code that the analyser runs:
identification, stream cutters, framers and decoder of one flow, fed with runs and gaps.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from hypothesis import strategies as st

from wirewitness.analyser.decoding.flow_decoder import FlowDecoder
from wirewitness.analyser.tcp.chunks import Gap, Run, Segments
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.analyser.tcp.streams import Half
from wirewitness.dissectors.core.inspect import Asked, Node
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, CORE_ROWS, MESSAGE_FIELDS, SERVER_TO_CLIENT, Frame, Row
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Dissector, Sink

PORT = 4711
NS = 1_000_000
_ROLE, _COMPLETE = MESSAGE_FIELDS.index("role"), MESSAGE_FIELDS.index("complete")


class Turn(NamedTuple):
    """Bytes that one side sends in one packet; None in place of them when that many bytes are lost."""

    direction: int
    data: bytes | None
    lost_bytes: int = 0
    packet: int = 0


@dataclass(frozen=True)
class Case:
    """A protocol under test.

    talk: decoders from a connection's first byte, turn by turn, each turn one or more whole frames.
    long_talk: one of at least 400 turns, for losses. asked: what `inspect` may be told.
    found_after_loss: the share of the messages not hit by a loss that must still be found.
    """

    dissector: Dissector
    talk: st.SearchStrategy[list[Turn]]
    long_talk: list[Turn] = field(repr=False)
    asked: Sequence[Asked] = (Asked(None, None, None),)
    found_after_loss: float = 0.9
    limits: Limits = field(default_factory=Limits)

    def fields(self) -> dict[str, tuple[str, ...]]:
        """Fields of the rows of every table."""
        return {table: fields.names for table, fields in {**CORE_ROWS, **self.dissector.rows}.items()}


def decoded(case: Case, turns: Sequence[Turn], *, whole: bool = True, together: int = 1) -> dict[str, list[Row]]:
    """The rows of one flow. together: so many turns are consumed at a time. Packets count turns unless they say."""
    sink = Sink(list(case.fields()))
    flow = _flow(whole=whole)
    flow_decoder = FlowDecoder(
        {case.dissector.name: case.dissector}, (case.dissector.name, PORT), (PORT, 50000), case.limits, DecodeOptions()
    )
    for number, turn in enumerate(turns, 1):
        packet = turn.packet or number
        half = flow.halves[turn.direction == CLIENT_TO_SERVER]
        if turn.data is None:
            half.emit(Gap(turn.lost_bytes, packet, packet * NS))
        elif turn.data:
            half.emit(Run([turn.data], len(turn.data), Segments([0], [packet], [packet * NS], [packet])))
        if number % together == 0:
            flow_decoder.consume(flow, sink)
    flow.finished = True
    flow_decoder.consume(flow, sink)
    return {table: list(rows) for table, rows in sink.tables().items()}


def check_any_bytes(case: Case, data: st.DataObject) -> None:
    """Nothing raises on any bytes and gaps, and every row has its table's fields."""
    turns = data.draw(st.lists(st.one_of(_any_turn(), _broken(case.talk)), max_size=12))
    rows = decoded(case, turns, whole=data.draw(st.booleans()), together=data.draw(st.integers(1, 4)))
    for table, fields in case.fields().items():
        assert all(len(row) == len(fields) for row in rows[table])


def check_any_split(case: Case, data: st.DataObject) -> None:
    """However the streams are cut into segments and batches, the rows are the same."""
    turns = [turn._replace(packet=number) for number, turn in enumerate(data.draw(case.talk), 1)]
    pieces = [piece for turn in turns for piece in _split(turn, data)]
    assert decoded(case, pieces, together=data.draw(st.integers(1, 50))) == decoded(case, turns)
    single = [turn._replace(data=bytes([byte])) for turn in turns[:20] for byte in turn.data or b""]
    assert decoded(case, single) == decoded(case, turns[:20])


def check_truncation(case: Case, data: st.DataObject) -> None:
    """A capture that ends early gives the messages up to there, and at most one cut message for each side."""
    turns = [turn._replace(packet=number) for number, turn in enumerate(data.draw(case.talk), 1)]
    keep = data.draw(st.integers(0, len(turns)))
    cut = turns[:keep]
    if keep < len(turns):
        last = turns[keep]
        cut = [*cut, last._replace(data=(last.data or b"")[: data.draw(st.integers(0, len(last.data or b"")))])]
    whole = _messages(decoded(case, turns))
    part = decoded(case, cut)["messages"]
    complete = [row for row in part if row[_COMPLETE]]
    assert {row[:3] for row in complete} <= {row[:3] for row in whole}
    assert [row[:3] for row in complete] == [row[:3] for row in whole][: len(complete)]
    assert len(part) - len(complete) <= 2


def check_loss(case: Case, seed: int) -> None:
    """With every hundredth packet lost no message is made up, and nearly all that were not hit are found again."""
    turns = [turn._replace(packet=number) for number, turn in enumerate(case.long_talk, 1)]
    lost = {place for place in range(20, len(turns)) if (place * 2_654_435_761 + seed) % 100 == 0}
    assert lost
    thinned = [
        turn._replace(data=None, lost_bytes=len(turn.data or b"")) if place in lost else turn
        for place, turn in enumerate(turns)
    ]
    true = {row[:3] for row in _messages(decoded(case, turns)) if row[4] not in {place + 1 for place in lost}}
    rows = decoded(case, thinned)
    found = {row[:3] for row in rows["messages"] if row[_COMPLETE]}
    assert found <= {row[:3] for row in _messages(decoded(case, turns))}
    assert len(found & true) >= case.found_after_loss * len(true)
    assert [row[6] for row in rows["expert_infos"]].count("gap") == len(lost)


def check_cut_boundary(case: Case, direction: int) -> None:
    """Behind a loss the first whole message is found, wherever a segment ends inside it or right behind it."""
    turns = [turn._replace(packet=number) for number, turn in enumerate(case.long_talk[:60], 1)]
    hit, found_again = [place for place, turn in enumerate(turns) if turn.direction == direction and place >= 20][:2]
    lost, first = turns[hit].data or b"", turns[found_again].data or b""
    turns[hit] = turns[hit]._replace(data=None, lost_bytes=len(lost))
    true = _found(decoded(case, turns), found_again)
    turns[hit] = turns[hit]._replace(lost_bytes=len(lost) - 3)
    for cut in range(1, len(first) + 1):
        parts = [lost[-3:] + first[:cut], first[cut:]]
        split = [turns[found_again]._replace(data=part) for part in parts]
        rows = decoded(case, [*turns[:found_again], *split, *turns[found_again + 1 :]])
        assert _found(rows, found_again) == true, cut


def check_damaged_size(case: Case, direction: int, damaged: Callable[[bytes], bytes], lost: bool) -> None:
    """A message that seems many MiB long costs a few that follow it, not all; also when some of those are lost."""
    turns = [turn._replace(packet=number) for number, turn in enumerate(case.long_talk[:80], 1)]
    true = _found(decoded(case, turns), 0)
    sent = [place for place, turn in enumerate(turns) if turn.direction == direction and place >= 20]
    hit = next(place for place in sent if len(turns[place].data or b"") >= 8)
    first, second = [place for place in sent if place > hit][:2]
    # In one segment with the next message, so that those behind it come in shorter ones.
    turns[hit] = turns[hit]._replace(data=damaged(turns[hit].data or b"") + (turns[first].data or b""))
    turns[first] = turns[first]._replace(data=b"")
    if lost:
        turns[second] = turns[second]._replace(data=None, lost_bytes=len(turns[second].data or b""))
    rows = decoded(case, turns)
    found = _found(rows, 0)
    assert found <= true
    assert len(true - found) <= 2 + lost
    assert [row[6] for row in rows["expert_infos"]].count("frame_given_up") == 1
    assert decoded(case, turns, together=50) == rows


def _found(rows: dict[str, list[Row]], since: int) -> set[tuple[Any, ...]]:
    """Direction, offset and length of the messages from that turn on."""
    return {row[:3] for row in _messages(rows) if row[4] > since}


def check_pickling(case: Case, data: st.DataObject) -> None:
    """Framers and decoders can move between processes at any time."""
    dissector, limits = case.dissector, case.limits
    decoder = dissector.decoder(limits, DecodeOptions())
    framers = [dissector.framer(direction, True, limits) for direction in (CLIENT_TO_SERVER, SERVER_TO_CLIENT)]
    sink, plain = Sink(list(case.fields())), decoded(case, turns := data.draw(case.talk))
    at = [0, 0]
    for packet, (direction, content, _, _) in enumerate(turns, 1):
        content = content or b""
        cut = framers[direction].feed(content, [0], lambda position: True)
        frames = [
            Frame(packet, direction, content, start, end, at[direction] + start, packet, packet, packet * NS, True)
            for start, end in zip(cut.starts, cut.ends, strict=True)
        ]
        at[direction] += len(content)
        decoder.feed(frames, sink)
        decoder, framers = pickle.loads(pickle.dumps((decoder, framers)))
    decoder.finish(sink)
    assert {table: list(rows) for table, rows in sink.tables().items()} == plain


def check_inspect(case: Case, data: st.DataObject) -> None:
    """`inspect` never raises; its nodes cover the frame, and what it hides rises and lies inside."""
    turns = data.draw(case.talk)
    frame = data.draw(
        st.one_of(st.binary(max_size=200), st.sampled_from([turn.data or b"" for turn in turns] or [b""]))
    )
    cut = frame[: data.draw(st.integers(0, len(frame)))]
    for asked in case.asked:
        check_tree(case.dissector, cut, asked)


def check_tree(dissector: Dissector, frame: bytes, asked: Asked) -> None:
    """The same for these bytes."""
    for payload in (False, True):
        found = dissector.inspect(frame, asked, DecodeOptions(payload=payload))
        _check_nodes(found.nodes, 0, len(frame))
        spans = [place for hidden in found.hidden for place in (hidden.start, hidden.end)]
        assert spans == sorted(spans)
        assert not spans or (spans[0] >= 0 and spans[-1] <= len(frame))
        assert isinstance(dissector.may_hide(asked), bool)


def check_probe(case: Case, data: st.DataObject) -> None:
    """The probe knows its own protocol, and takes any bytes."""
    turns = data.draw(case.talk)
    heads = [
        b"".join(turn.data or b"" for turn in turns if turn.direction == direction)
        for direction in (CLIENT_TO_SERVER, SERVER_TO_CLIENT)
    ]
    if heads[0]:
        assert 50 <= case.dissector.probe(heads[0], heads[1], True) <= 100
    noise = [data.draw(st.binary(max_size=80)) for _ in range(2)]
    assert 0 <= case.dissector.probe(noise[0], noise[1], data.draw(st.booleans())) <= 100
    mixed = (heads[0][data.draw(st.integers(0, 40)) :], noise[1])
    assert 0 <= case.dissector.probe(*mixed, False) <= 100


def _messages(rows: dict[str, list[Row]]) -> list[tuple[Any, ...]]:
    """Messages in the order of the rows: direction, offset, length, ..."""
    return [row for row in rows["messages"] if row[_COMPLETE]]


def _flow(*, whole: bool) -> Flow:
    halves = (Half(), Half())
    for half in halves:
        half.start(1, isn=0 if whole else None)
    return Flow(0, 0, 1, 0, 0, 1, halves, client_is_low=True)


def _any_turn() -> st.SearchStrategy[Turn]:
    direction = st.sampled_from([CLIENT_TO_SERVER, SERVER_TO_CLIENT])
    sent = st.builds(Turn, direction, st.binary(max_size=120))
    return st.one_of(sent, st.builds(Turn, direction, st.none(), st.integers(1, 300)))


def _broken(talk: st.SearchStrategy[list[Turn]]) -> st.SearchStrategy[Turn]:
    """A turn of a valid decoder with some bytes changed."""

    def damaged(parts: tuple[list[Turn], int, int, bytes]) -> Turn:
        turns, which, place, noise = parts
        if not turns:
            return Turn(CLIENT_TO_SERVER, noise)
        turn = turns[which % len(turns)]
        content = turn.data or b""
        at = place % (len(content) + 1)
        return turn._replace(data=content[:at] + noise + content[at + len(noise) :])

    return st.tuples(talk, st.integers(0, 100), st.integers(0, 1000), st.binary(max_size=4)).map(damaged)


def _split(turn: Turn, data: st.DataObject) -> list[Turn]:
    content = turn.data or b""
    if len(content) < 2:
        return [turn]
    places = data.draw(st.lists(st.integers(1, len(content) - 1), max_size=3, unique=True))
    return [turn._replace(data=content[a:b]) for a, b in pairwise(sorted([0, len(content), *places]))]


def _check_nodes(nodes: Sequence[Node], start: int, end: int) -> None:
    at = start
    for node in nodes:
        assert at == node.start <= node.end
        at = node.end
    assert at == end or not nodes
    assert nodes or end == start
