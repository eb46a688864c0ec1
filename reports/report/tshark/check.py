"""Compares our messages with tshark's, one capture file after the other.

In: an analysis that holds TABLES, a tshark. Out: a CrossCheck. Memory does not grow with the capture: our rows come
from DuckDB in order, tshark's packets from its output, and both wait for each other in a window.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from wirewitness.analyser.base.options import ReadOptions
from wirewitness.reports.report.tshark import match as our_side
from wirewitness.reports.report.tshark.case import Case
from wirewitness.reports.report.tshark.fields import PACKETS, packet_fields
from wirewitness.reports.report.tshark.limits import reason, seen_with
from wirewitness.reports.report.tshark.match import TABLES, FlowState, Pair, Tables, matched
from wirewitness.reports.report.tshark.message import HEAD, Endpoint, Ours, Theirs
from wirewitness.reports.report.tshark.one_keylog import one_keylog
from wirewitness.reports.report.tshark.protocols import COMPARED
from wirewitness.reports.report.tshark.result import CrossCheck, Example
from wirewitness.reports.report.tshark.trees import MALFORMED, Packet
from wirewitness.reports.report.tshark.tshark import Tshark, TsharkError

# tshark's packets to messages, each by the reader of its protocol.

_READERS = {compared.layer: compared.read for compared in COMPARED.values()}


def messages(packet: Packet) -> list[Theirs]:
    """The messages that end in a packet, in the order of the stream."""
    found: list[Theirs] = []
    for place, (name, tree) in enumerate(packet.layers):
        if name == MALFORMED or not isinstance(tree, list):
            continue
        broken = place + 1 < len(packet.layers) and packet.layers[place + 1][0] == MALFORMED
        message = _READERS[name](packet, [*tree, (MALFORMED, "")] if broken else tree)
        if message is not None:
            found.append(message)
    return found


__all__ = ["TABLES", "cross_check"]

# Requests on which tshark gave up, and packets that both sides number differently, are remembered up to so many.
REMEMBERED = 1 << 16


def cross_check(
    tables: Tables, tshark: Tshark, paths: Mapping[str, str] | None = None, *, with_fields: bool = False
) -> CrossCheck:
    """Compare every message of the selected rows.

    paths: where files are whose name in the tables is not their path. with_fields: the first PACKETS disagreements get
    all that tshark says of their packets. What tshark cannot read is in `unread`.
    """
    result = CrossCheck(".".join(map(str, tshark.version)))
    if result.version not in seen_with():
        known = ", ".join(sorted(seen_with()))
        result.remarks.append(
            f"the known reasons were seen with tshark {known}, this is {result.version or 'unknown'}: what it does "
            "better is compared, what it does otherwise shows as disagreement"
        )
    with one_keylog(tables.options.keylogs) as keylog:
        _check_files(tables, replace(tshark, keylog=keylog), paths or {}, result, with_fields=with_fields)
    return result


def _check_files(
    tables: Tables, tshark: Tshark, paths: Mapping[str, str], result: CrossCheck, *, with_fields: bool
) -> None:
    flows = our_side.odd_flows(tables)
    for file in our_side.files(tables):
        path = paths.get(file, file)
        if not os.path.exists(path):
            result.unread.append(
                f"{path} is not there: tshark reads the capture itself, also where a dataset has its rows"
            )
            continue
        ports = our_side.server_ports(tables, file)
        one = _File(file, flows, our_side.continued_flows(tables, file), ports.shared, result)
        tshark = replace(tshark, encrypted=ports.encrypted)
        theirs = _theirs(tshark, path, ports.protocol_of, tables.options, one)
        try:
            for pair in matched(our_side.messages(tables, file), theirs):
                one.compare(pair)
            if with_fields:
                _add_fields(result, tshark, path, file, ports.protocol_of)
        except TsharkError as error:
            result.unread.append(str(error))


def _add_fields(result: CrossCheck, tshark: Tshark, path: str, file: str, ports: Mapping[int, str]) -> None:
    """Of the disagreements of one file that are among the first of all."""
    places = [place for place, one in enumerate(result.disagreements[:PACKETS]) if one.file == file]
    packet_of = {place: result.disagreements[place].other_packet or result.disagreements[place].packet or 0
                 for place in places}  # fmt: skip
    fields = packet_fields(tshark, path, ports, packet_of.values())
    for place, packet in packet_of.items():
        result.disagreements[place] = replace(result.disagreements[place], fields=fields.get(packet, ()))


def _theirs(tshark: Tshark, path: str, ports: dict[int, str], options: ReadOptions, one: _File) -> Iterator[Theirs]:
    """tshark's messages of the selected time and protocols; where it stops too early, `one` is told."""
    last_packet = 0
    first = 0 if options.from_ns is None else options.from_ns
    last = 1 << 64 if options.to_ns is None else options.to_ns
    try:
        for packet in tshark.packets(path, ports):
            last_packet = packet if isinstance(packet, int) else packet.number
            if isinstance(packet, int):
                one.result.too_large += 1
            elif first <= packet.ts_ns < last:
                yield from (
                    message
                    for message in messages(packet)
                    if not options.protocols or message.key.protocol in options.protocols
                )
    except TsharkError as error:
        if not error.cut:
            raise
        one.result.remarks.append(str(error))
        one.last_packet = last_packet


class _File:
    """What is remembered while the messages of one file are compared.

    last_packet: tshark's last one where it stopped at a damage of the file, else None.
    """

    def __init__(
        self,
        file: str,
        flows: dict[frozenset[Endpoint], FlowState],
        continued: frozenset[frozenset[Endpoint]],
        shared: frozenset[int],
        result: CrossCheck,
    ) -> None:
        self._file, self._flows, self._shared, self.result = file, flows, shared, result
        self._continued = continued
        self.last_packet: int | None = None
        # Requests that tshark could not read, by flow and correlation id; its packet -> ours, where they differ;
        # requests that have an answer.
        self._given_up: OrderedDict[Any, None] = OrderedDict()
        self._packets: OrderedDict[Any, int] = OrderedDict()
        self._answered: OrderedDict[Any, None] = OrderedDict()
        # Connections: tshark's numbers and our ids.
        self._flow_of: dict[int, str] = {}
        self._stream_of: dict[str, int] = {}
        self._started: set[tuple[Endpoint, Endpoint]] = set()

    def compare(self, pair: Pair) -> None:
        """Count one message of either side or both."""
        ours, theirs = pair
        message = ours or theirs
        assert message is not None
        stream = message.key.sender, message.key.receiver
        ends = frozenset(stream)
        state = self._flows.get(ends, FlowState())
        differing = self._differing(ours, theirs, ends) if ours and theirs else {}
        case = Case(
            ours,
            theirs,
            frozenset(differing),
            forgotten=theirs is not None and (ends, theirs.values.get("number")) in self._given_up,
            gap=state.gap,
            midstream=state.midstream,
            encrypted=state.encrypted,
            shared=not self._shared.isdisjoint(port for _, port in stream),
            started=stream in self._started,
            answered=theirs is not None and (ends, theirs.values.get("request")) in self._answered,
            damaged=ours is not None and self.last_packet is not None and ours.packet > self.last_packet,
            continued=ends in self._continued,
        )
        self._remember(ours, theirs, ends)
        if ours and theirs and not differing.keys() & {"length_bytes", "number"}:
            self._started.add(stream)
        if ours and theirs and not differing and not theirs.gave_up:
            self.result.add_agreement(message.key.protocol, ours.operation, ours.role)
            return
        self.result.add(self._example(pair, differing), reason(case))

    def _differing(self, ours: Ours, theirs: Theirs, ends: Any) -> dict[str, tuple[Any, Any]]:
        """Values that both have and that are not equal: ours and theirs. Bodies of what tshark gave up on are not."""
        names = ours.values.keys() & theirs.values.keys()
        if theirs.gave_up:
            names &= HEAD
        other = dict(theirs.values)
        if COMPARED[ours.key.protocol].request_is_packet and "request" in names:
            place = ends, other["request"], theirs.key.number
            other["request"] = self._packets.get(place, other["request"])
        found = {name: (ours.values[name], other[name]) for name in names if ours.values[name] != other[name]}
        for name in names:
            self.result.compared[ours.key.protocol, name] = self.result.compared.get((ours.key.protocol, name), 0) + 1
        if ours.packet != theirs.packet:
            found["packet"] = ours.packet, theirs.packet
        flow_id = self._flow_of.setdefault(theirs.stream, ours.flow_id)
        stream = self._stream_of.setdefault(ours.flow_id, theirs.stream)
        if (flow_id, stream) != (ours.flow_id, theirs.stream):
            found["flow"] = ours.flow_id, theirs.stream
        return found

    def _remember(self, ours: Ours | None, theirs: Theirs | None, ends: Any) -> None:
        if theirs is None:
            return
        if ours is not None and ours.packet != theirs.packet:
            _keep(self._packets, (ends, theirs.packet, theirs.key.number), ours.packet)
        if "request" in theirs.values:
            _keep(self._answered, (ends, theirs.values["request"]), None)
        if theirs.role == "request" and theirs.gave_up:
            _keep(self._given_up, (ends, theirs.values.get("number")), None)

    def _example(self, pair: Pair, differing: dict[str, tuple[Any, Any]]) -> Example:
        ours, theirs = pair
        first: Any = ours or theirs
        kind = (
            "only_theirs" if ours is None else "only_ours" if theirs is None else "differ" if differing else "gave_up"
        )
        return Example(
            kind,
            first.key.protocol,
            first.operation,
            first.role,
            first.version,
            self._file,
            ours.packet if ours else None,
            theirs.packet if theirs else None,
            ours.message_id if ours else None,
            tuple((name, *values) for name, values in sorted(differing.items())),
            theirs.remarks if theirs else (),
        )


def _keep(memory: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > REMEMBERED:
        memory.popitem(last=False)
