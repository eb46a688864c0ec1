"""Rows of exchanges that were read together. In: their frames, facts by column. Out: blocks of the three tables."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.blocks import Block, Coded, Column, Numbers, Same
from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER
from wirewitness.dissectors.mongo.handshake import CONNECTION, SERVER
from wirewitness.dissectors.mongo.lockstep.buffer import Buffer
from wirewitness.dissectors.mongo.lockstep.filled import Filled
from wirewitness.dissectors.mongo.lockstep.hellos import Known
from wirewitness.dissectors.mongo.lockstep.pairs import Pairs
from wirewitness.dissectors.mongo.lockstep.responses import Outcomes
from wirewitness.dissectors.mongo.opcodes import OP_MSG, opcode_name
from wirewitness.dissectors.mongo.output import latency_ms, reply_line

_VERSION = Same(opcode_name(OP_MSG))
_NOTHING = Same(None)
# Beyond this many ns a quotient has no exact millionths.
_EXACT_NS = 1 << 52
_NS_PER_MS = 1e6


class Placed(NamedTuple):
    """Rows of one table, and the frame at which each is due; these rise."""

    block: Block
    due: Ints


class Exchanges(NamedTuple):
    """Exchanges in the order of their replies.

    commands: of each the name of its command. lines: what `messages` says of each request. outcomes: of the replies.
    awaitable: which requests may be answered when news come.
    """

    pairs: Pairs
    awaitable: Flags
    commands: Coded
    lines: Coded
    outcomes: Outcomes

    @property
    def size(self) -> int:
        """How many exchanges."""
        return len(self.pairs.asked)


def fill_known(known: Known, pairs: Pairs, filled: Filled) -> None:
    """What is known of client and server at each exchange; what a hello says of itself is filled in afterwards."""
    now = known.at(pairs.answered)
    for column in (*CONNECTION, *SERVER):
        filled.coded(column, np.arange(len(now)), now, [facts.get(column) for facts in known.facts])


class Told:
    """Makes the rows of exchanges."""

    def __init__(self, frames: Frames, buffer: Buffer, known: Known, exchanges: Exchanges) -> None:
        self._frames, self._buffer, self._known, self._exchanges = frames, buffer, known, exchanges
        self._apps = [facts.get("app_name") for facts in known.facts]

    def messages(self) -> Placed:
        """Rows of `messages`: of the requests and the replies."""
        frames, of = self._frames, self._exchanges
        places = np.concatenate((of.pairs.asked, of.pairs.answered))
        order = np.argsort(places)
        rows, asked = places[order], np.concatenate((of.pairs.asked, of.pairs.asked))[order]
        commands = Coded(np.concatenate((of.commands.codes, of.commands.codes))[order], of.commands.values)
        replies = [reply_line(one) for one in of.outcomes.values]
        lines = np.concatenate((of.lines.codes, of.outcomes.codes + len(of.lines.values)))[order]
        columns: tuple[Column, ...] = (
            Numbers(frames.direction[rows]),
            Numbers(frames.offset[rows]),
            Numbers(frames.size[rows]),
            Numbers(frames.packet_first[rows]),
            Numbers(frames.packet_last[rows]),
            Numbers(frames.ts_ns[rows]),
            Coded((frames.direction[rows] != CLIENT_TO_SERVER).astype(np.int64), ("request", "response")),
            commands,
            _VERSION,
            Numbers(self._buffer.int32(frames.start[rows] + 4)),
            self._client_ids(asked),
            Same(True),
            _NOTHING,
            Coded(lines, [*of.lines.values, *replies]),
        )
        return Placed(Block(columns, len(rows)), rows)

    def exchanges(self) -> Placed:
        """Rows of `exchanges`."""
        frames, of = self._frames, self._exchanges
        asked, answered = of.pairs
        outcomes = of.outcomes
        columns: tuple[Column, ...] = (
            Same(CLIENT_TO_SERVER),
            Numbers(frames.offset[asked]),
            Numbers(frames.offset[answered]),
            Numbers(frames.packet_last[asked]),
            Numbers(frames.packet_last[answered]),
            Numbers(frames.ts_ns[asked]),
            Numbers(frames.ts_ns[answered]),
            of.commands,
            _VERSION,
            self._client_ids(asked),
            Coded(outcomes.codes, [one.status for one in outcomes.values]),
            Coded(outcomes.codes, [one.code for one in outcomes.values]),
            Coded(outcomes.codes, [one.name for one in outcomes.values]),
            Numbers(frames.size[asked]),
            Numbers(frames.size[answered]),
            Numbers(of.awaitable),
            _NOTHING,
        )
        return Placed(Block(columns, of.size), answered)

    def commands(self, filled: Filled) -> Placed:
        """Rows of `mongo_commands`. filled: what requests and replies say."""
        frames, of = self._frames, self._exchanges
        asked, answered = of.pairs
        rows = np.arange(of.size)
        for column, numbers in (
            ("request_offset", frames.offset[asked]),
            ("response_offset", frames.offset[answered]),
            ("request_packet", frames.packet_last[asked]),
            ("response_packet", frames.packet_last[answered]),
            ("ts", frames.ts_ns[asked]),
            ("ts_response", frames.ts_ns[answered]),
            ("ts_last_response", frames.ts_ns[answered]),
            ("request_bytes", frames.size[asked]),
            ("response_bytes", frames.size[answered]),
            ("request_uncompressed_bytes", frames.size[asked]),
            ("response_uncompressed_bytes", frames.size[answered]),
            ("request_id", self._buffer.int32(frames.start[asked] + 4)),
        ):
            filled.numbers(column, rows, numbers)
        latencies = _latencies(frames.ts_ns[asked], frames.ts_ns[answered])
        filled.numbers("latency_ms", rows, latencies, ~of.awaitable)
        filled.numbers("awaitable", rows, of.awaitable)
        filled.coded("status", rows, of.outcomes.codes, [one.status for one in of.outcomes.values])
        for column, value in (("opcode", opcode_name(OP_MSG)), ("replies", 1)):
            filled.same(column, rows, value)
        return Placed(filled.block(), answered)

    def _client_ids(self, asked: Ints) -> Coded:
        return Coded(self._known.at(asked), self._apps)


def _latencies(asked_ns: Ints, answered_ns: Ints) -> np.ndarray:
    """As `latency_ms` gives them; a quotient of millionths needs no rounding to millionths, where it is exact."""
    passed = answered_ns - asked_ns
    found = passed / _NS_PER_MS
    for row in np.flatnonzero(np.abs(passed) > _EXACT_NS).tolist():
        found[row] = latency_ms(int(asked_ns[row]), int(answered_ns[row]))
    return found
