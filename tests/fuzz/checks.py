"""What is done with an input: the product reads it as it would read it from a capture. Any exception is a finding.

In: bytes. Out: nothing. What is made of them is checked where it is cheap: rows fit their tables, trees have no gaps.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import wirewitness
from tests.fuzz.pieces import FORCED, MID_STREAM, TOGETHER, WITH_PAYLOAD, Spoken, packets, said
from tests.support.packets import Captured, pcap
from tests.support.wire import decode
from wirewitness.analyser.base.faults import FAULTS, RAISE
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.decoding.rows.fields import row_fields, row_kinds
from wirewitness.analyser.decoding.rows.raw_table import RawTable
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.registry import dissectors

os.environ[FAULTS] = RAISE
BLOCK_BYTES = 1 << 16


@cache
def folder() -> Path:
    """A folder for files of this process."""
    made = Path(tempfile.mkdtemp(prefix="wirewitness-fuzz-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def check_streams(spoken: Spoken, data: bytes) -> None:
    """DATA as a decoder, from reassembled streams to rows of Arrow."""
    from wirewitness.analyser.decoding.flow_decoder import FlowDecoder
    from wirewitness.analyser.tcp.chunks import Gap, Run, Segments
    from wirewitness.analyser.tcp.flow import Flow
    from wirewitness.analyser.tcp.streams import Half

    options = data[0] if data else 0
    sink = Sink(list(_fields()))
    halves = (Half(), Half())
    for half in halves:
        half.start(1, isn=None if options & MID_STREAM else 0)
    flow = Flow(0, 0, 1, 0, 0, 1, halves, client_is_low=True)
    forced = (spoken.protocol, spoken.port) if options & FORCED else None
    decode_options = DecodeOptions(payload=bool(options & WITH_PAYLOAD))
    decoder = FlowDecoder(dissectors(()), forced, (spoken.port, 50_000), Limits(), decode_options)
    for number, (from_client, payload, is_lost, _, _) in enumerate(said(spoken, data), 1):
        direction = CLIENT_TO_SERVER if from_client else SERVER_TO_CLIENT
        half = flow.halves[direction == CLIENT_TO_SERVER]
        if is_lost:
            half.emit(Gap(len(payload) or 1, number, number * 1_000_000))
        elif payload:
            place = Segments([0], [number], [number * 1_000_000], [number])
            half.emit(Run([payload], len(payload), place))
        if not options & TOGETHER:
            decoder.consume(flow, sink)
    flow.finished = True
    decoder.consume(flow, sink)
    _check_rows(sink)


@cache
def _fields() -> dict[str, tuple[str, ...]]:
    return {name: tuple(fields) for name, fields in row_fields(dissectors(())).items()}


@cache
def _kinds() -> dict[str, dict[str, str]]:
    return {name: dict(kinds) for name, kinds in row_kinds(dissectors(())).items()}


def _check_rows(sink: Sink) -> None:
    """All rows become Arrow."""
    from wirewitness.analyser.decoding.rows.row_expansion import gathering

    for name, rows in sink.tables().items():
        if not rows:
            continue
        gather = gathering(name)
        names = gather.fields if gather else _fields()[name]
        kinds = [_kinds()[name][one] for one in names]
        table = RawTable(name, names, kinds, rows, folder(), gather)
        table.mark(1)
        table.pack()


def check_decoder(spoken: Spoken, data: bytes) -> None:
    """DATA as a decoder in a capture, from packets to the raw tables."""
    flags = data[0] if data else 0
    forced = {spoken.port: spoken.protocol} if flags & FORCED else {}
    check_packets(packets(spoken, data), ReadOptions(decode_as=forced, payload=bool(flags & WITH_PAYLOAD)))


def check_packets(talk: Sequence[Captured] | bytes, options: ReadOptions | None = None) -> None:
    """Packets to the raw tables, which are read whole."""
    decoded = decode(talk, list(TABLES), options=options or ReadOptions(payload=True), block_bytes=BLOCK_BYTES)
    try:
        for table in decoded.store.tables.values():
            for batch in table.batches():
                batch.validate(full=True)
    finally:
        decoded.store.close()


def check_message(spoken: Spoken, data: bytes) -> None:
    """The first two bytes choose what is known of the message, the rest is its frame: `show` makes a tree of it."""
    from tests.dissectors.properties import check_tree

    asked = spoken.asked[int.from_bytes(data[:2], "big") % len(spoken.asked)]
    check_tree(dissectors(())[spoken.protocol], data[2:], asked)


def check_capture(data: bytes) -> None:
    """DATA as a capture file, read in two ways that must agree."""
    from tests.analyser.capture.reading import read_bytes
    from wirewitness.analyser.capture import CaptureError

    try:
        whole, stats = read_bytes(data, block_bytes=BLOCK_BYTES)
    except CaptureError:
        return
    again, again_stats = read_bytes(data, block_bytes=512)
    if any(remark.code == "read_failed" for remark in (*stats.remarks, *again_stats.remarks)):
        return  # what is unpacked in front of damaged compressed data depends on how much is asked for at a time
    for one in (stats, again_stats):
        one.comments.sort(key=repr)  # those on packets are read block by block, after the others of their block
    assert (again, again_stats) == (whole, stats)


def check_whole_way(talk: Sequence[Captured] | bytes) -> None:
    """Packets to finished tables and findings, all of which are read."""
    capture = folder() / "talk.pcap"
    capture.write_bytes(talk if isinstance(talk, bytes) else pcap(talk, nanoseconds=True))
    try:
        analysis = wirewitness.read(capture)
    except wirewitness.CaptureError:
        return
    with analysis:
        for name in analysis.tables():
            for batch in analysis.batches(name):
                batch.validate(full=True)
        assert not analysis.failures, analysis.failures
        assert not analysis.faults, analysis.faults
