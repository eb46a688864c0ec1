"""Kafka's request log as a capture: which lines tell of a request, and when they were written.

In: blocks of a text file, lines of other loggers among them. Out: `LogLine`s; what they say is left to the protocol.
The broker writes `Completed request:` and JSON when an answer has been sent (RequestChannel.updateRequestMetrics).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from typing import NamedTuple

from wirewitness.analyser.capture.blocks import BlockBuffer
from wirewitness.analyser.capture.foreign import HEAD_BYTES
from wirewitness.analyser.capture.limits import CaptureLimits
from wirewitness.analyser.capture.log_times import LineTimes
from wirewitness.analyser.capture.log_wrapping import is_part, joined, message_of
from wirewitness.analyser.capture.model import CaptureStats, Remark, add_remark

FORMAT = "Kafka request log"
_MARK = b"Completed request:"
_WITH_JSON = _MARK + b"{"
# A body inside another object, whose quotes are escaped.
_ESCAPED = b"{\\"
# How far one looks for the first such line: a log of all loggers begins with what the broker says when it starts.
_LOOKED_AT_BYTES = 4 << 20
_SECOND_NS = 1_000_000_000

MEANINGS = {
    "log_long": "longer than {} bytes, which are passed over",
    "log_time": "without a time, which get that of the line before",
    "log_no_time": "without a time, with none before them, which are left out",
    "log_wrapped": "of JSON in JSON that cannot be read, as where a line is cut, and are left out",
    "log_spread": (
        'of JSON that is spread over several lines, and are left out; compact="true" eventEol="true" in log4j\'s '
        "JsonLayout gives a line for each"
    ),
    "log_older": "in the form of older brokers (before KIP-673), which is no JSON, and are left out",
}


class LogLine(NamedTuple):
    """A line that tells of a request: its number in the file from 1, when it was written, its JSON and what follows.

    is_cut: its time is cut to the second, and ts_ns an estimate that keeps the order of lines.
    """

    number: int
    ts_ns: int
    text: bytes
    is_cut: bool = False


def is_request_log(blocks: BlockBuffer) -> bool:
    """Is this text with a line that tells of a request, near its beginning? Nothing is consumed."""
    searched = 0
    while True:
        data, start, end = blocks.data, blocks.start, blocks.end
        if b"\0" in data[start : min(end, start + HEAD_BYTES)]:
            return False
        if data.find(_WITH_JSON, start + max(0, searched - len(_WITH_JSON)), end) >= 0:
            return True
        searched = end - start
        if blocks.eof or searched >= _LOOKED_AT_BYTES:
            return False
        blocks.fill()


class RequestLog:
    """The lines of one log. zone_ns: as in `LineTimes`. stats: grows on the way, also while lines are handed out."""

    def __init__(self, blocks: BlockBuffer, stats: CaptureStats, limits: CaptureLimits, zone_ns: int | None) -> None:
        self._blocks, self._stats, self._limits = blocks, stats, limits
        self._times = LineTimes(zone_ns)
        self._asked_zone = zone_ns is None
        self._odd: Counter[str] = Counter()
        self._number = 0
        self._last_ns: int | None = None
        self._is_cut = False
        self._estimated_ns = 0
        stats.format, stats.lines = FORMAT, 0

    def lines(self) -> Iterator[LogLine]:
        """All lines that tell of a request."""
        return chain.from_iterable(self.pieces())

    def pieces(self) -> Iterator[Iterator[LogLine]]:
        """The same lines as they come, those of one block at a time; each piece is read to its end before the next."""
        blocks, too_long = self._blocks, False
        while True:
            data, start = blocks.data, blocks.start
            cut = data.rfind(b"\n", start, blocks.end) + 1 or (blocks.end if blocks.eof else 0)
            if cut and not blocks.eof and not too_long:
                cut = self._whole(data, start, cut)
            if cut > start:
                if too_long:
                    start = (data.find(b"\n", start, cut) + 1) or cut
                    self._number, too_long = self._number + 1, False
                self._stats.captured_bytes += cut - blocks.start
                blocks.start = cut
                yield self._in_order(self._told(bytes(data[start:cut])))
            elif too_long or blocks.end - start > self._limits.max_line_bytes:
                self._odd["log_long"] += not too_long
                self._stats.captured_bytes += blocks.end - start
                too_long, blocks.start = True, blocks.end
            if blocks.eof and blocks.start == blocks.end:
                return
            blocks.fill()

    def count(self, code: str) -> None:
        """One more line of which something is to be remarked."""
        self._odd[code] += 1

    def end(self, meanings: dict[str, str]) -> None:
        """Remark on what was counted. meanings: the end of each sentence, for codes that are not of this file."""
        stats, most = self._stats, self._limits.max_remarks
        for code, number in sorted(self._odd.items()):
            text = {**MEANINGS, **meanings}[code].format(f"{self._limits.max_line_bytes:,}")
            what = "1 line" if number == 1 else f"{number:,} lines"
            add_remark(stats, most, Remark("warn", code, f"{what} {text}", None, 0))
        if cut := self._times.without_fraction:
            lines = "1 line has a time" if cut == 1 else f"{cut:,} lines have times"
            text = (
                f"{lines} of whole seconds: the order of lines holds, but times within a second are estimates, so "
                "between connections up to 1 s is in doubt; %d{ISO8601} in log4j's layout gives milliseconds"
            )
            add_remark(stats, most, Remark("note", "log_seconds", text, None, 0))
        if self._times.without_zone and self._asked_zone:
            text = "the times of its lines name no zone: they are read as UTC; --log-zone +02:00 gives another one"
            add_remark(stats, most, Remark("note", "log_zone", text, None, 0))

    def _whole(self, data: bytearray, start: int, cut: int) -> int:
        """Where to cut whole lines so that the parts of the last line that tells of a request stay together."""
        mark = data.rfind(_MARK, start, cut)
        begin = max(data.rfind(b"\n", start, mark) + 1, start)
        too_much = cut - begin > self._limits.max_line_bytes
        if mark < 0 or too_much or not is_part(data, begin, data.find(b"\n", mark, cut)):
            return cut
        held = bytes(data[begin:cut])
        _, is_whole = joined(held, 0, held.index(b"\n"), _MARK, self._limits.max_line_bytes)
        return cut if is_whole else begin

    def _told(self, text: bytes) -> Iterator[LogLine]:
        """The lines in whole lines of text."""
        at = counted = 0
        while (mark := text.find(_MARK, at)) >= 0:
            self._number += text.count(b"\n", counted, mark)
            counted = mark
            begin = text.rfind(b"\n", 0, mark) + 1
            end = text.find(b"\n", mark)
            at = end = len(text) if end < 0 else end
            before, behind = text[begin:mark], text[mark + len(_MARK) : end]
            if is_part(text, begin, end):
                line, _ = joined(text, begin, end, _MARK, self._limits.max_line_bytes)
                before, _, behind = line.partition(_MARK)
            if len(before) + len(_MARK) + len(behind) > self._limits.max_line_bytes:
                self._odd["log_long"] += 1
                continue
            if behind.startswith(_ESCAPED):
                message = message_of(before + _MARK + behind, _MARK)
                if message is None:
                    self._odd["log_spread" if before.lstrip().startswith(b'"') else "log_wrapped"] += 1
                    continue
                before, behind = message
            if not behind.startswith(b"{"):
                self._odd["log_older"] += behind.startswith(b"RequestHeader(")
            elif (ts_ns := self._time(before)) is not None:
                self._stats.lines = (self._stats.lines or 0) + 1
                yield LogLine(self._number + 1, ts_ns, behind, self._is_cut)
        self._number += text.count(b"\n", counted)

    def _in_order(self, lines: Iterator[LogLine]) -> Iterator[LogLine]:
        """The same lines; those whose times are cut to one second are spread over it, in their order."""
        for (is_cut, _), same in groupby(lines, lambda line: (line.is_cut, line.ts_ns)):
            if is_cut:
                yield from self._spread([*same])
            else:
                yield from same

    def _spread(self, lines: Sequence[LogLine]) -> Iterator[LogLine]:
        begin_ns = lines[0].ts_ns
        end_ns = begin_ns + _SECOND_NS
        if begin_ns <= self._estimated_ns < end_ns:  # some lines of this second came in the block before
            begin_ns = self._estimated_ns
        step_ns = (end_ns - begin_ns) // (len(lines) + 1)
        for number, line in enumerate(lines, 1):
            self._estimated_ns = begin_ns + number * step_ns
            yield line._replace(ts_ns=self._estimated_ns)

    def _time(self, prefix: bytes) -> int | None:
        cut_before = self._times.without_fraction
        found = self._times.of(prefix)
        if found is None:
            self._odd["log_no_time" if self._last_ns is None else "log_time"] += 1
            return self._last_ns
        self._last_ns, self._is_cut = found, self._times.without_fraction > cut_before
        return found
