"""What a live analysis says of itself: JSON lines about drops and how far it is behind, and what it still does at its
end."""

from __future__ import annotations

import json
import threading
import time
from types import SimpleNamespace
from typing import Any

from wirewitness.analyser.live.feed import CaptureState
from wirewitness.app.cli.live_ending import Ending, doing
from wirewitness.app.cli.live_output import JsonLines


def session(*, is_read: bool = False, **state: Any) -> Any:
    """A session that shows nothing but how it goes."""
    pipeline = SimpleNamespace(packets=0, lines=None, now_ns=None, fresh=[], shown_protocols=())
    findings = SimpleNamespace(rows=list)
    return SimpleNamespace(
        state=CaptureState(**state), pipeline=pipeline, findings=findings, news=[], lines=[], is_read=is_read
    )


class Lines:
    """What JSON lines wrote."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.output = JsonLines(self.write)

    def write(self, data: bytes) -> None:
        self.told += [json.loads(line) for line in data.splitlines()]


def test_json_lines_tell_drops_at_once_and_how_far_the_analysis_is_behind() -> None:
    lines, now = Lines(), session(packets=10, kernel_drops=0, backlog_drops=0, backlog_bytes=0)
    lines.output.show(now)
    now.state.packets = 20
    lines.output.show(now)  # within a second of the first one, and nothing was lost
    now.state.kernel_drops, now.state.backlog_bytes = 3, 4096
    now.pipeline.packets, now.pipeline.now_ns = 15, time.time_ns() - 2_000_000_000
    lines.output.show(now)
    first, dropped = lines.told
    assert (first["type"], first["packets_captured"], first["kernel_drops"], first["behind_ms"]) == ("state", 10, 0, 0)
    assert (dropped["packets_captured"], dropped["packets_read"], dropped["kernel_drops"]) == (20, 15, 3)
    assert (dropped["backlog_bytes"], 2000 <= dropped["behind_ms"] < 60_000) == (4096, True)


def test_nothing_new_is_no_line_and_the_last_state_is_told() -> None:
    lines, now = Lines(), session(packets=10)
    lines.output.show(now)
    lines.output.show(now)
    assert len(lines.told) == 1
    now.state.packets, now.is_read = 11, True
    lines.output.show(now)
    assert [line["packets_captured"] for line in lines.told] == [10, 11]


def test_of_a_stream_nobody_knows_what_was_dropped() -> None:
    lines = Lines()
    lines.output.show(session())
    assert {lines.told[0][name] for name in ("packets_captured", "kernel_drops", "backlog_drops", "behind_ms")} == {
        None
    }


def test_what_is_still_done_is_said_until_it_is_over() -> None:
    said: list[str] = []
    enough = threading.Event()

    def say(line: str) -> None:
        said.append(line)
        if len(said) == 2:
            enough.set()

    ending = Ending(say, first_s=0.01, every_s=0.01)
    ending.begin()  # before there is a session
    ending.of(session(backlog_bytes=3_100_000))
    assert enough.wait(30)
    ending.over()
    before = len(said)
    ending.begin()
    time.sleep(0.05)
    assert len(said) == before
    assert said[0].startswith("still reading what was captured, of which 3.1 MB are left: Ctrl-C again")


def test_what_is_quick_says_nothing() -> None:
    said: list[str] = []
    ending = Ending(said.append, first_s=30.0)
    ending.of(session())
    ending.begin()
    began = time.monotonic()
    ending.over()
    assert (said, time.monotonic() - began < 10) == ([], True)


def test_results_that_take_long_are_named() -> None:
    assert doing(session(is_read=True)).startswith("still putting the results together")
    assert doing(session()) == "still reading what was captured: Ctrl-C again leaves that out"
