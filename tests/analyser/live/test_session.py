"""A session over samples: the same tables and findings as reading them at once, whatever stays in memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import wirewitness
from tests.conftest import SAMPLES
from tests.support.lock_step import NEVER, lock_step
from tests.support.whole import differences, whole_of
from wirewitness.analyser.analysis.analysis import Analysis
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import Source
from wirewitness.analyser.live.feed import Watched
from wirewitness.analyser.live.findings_seen import News
from wirewitness.analyser.live.retention import Kept
from wirewitness.analyser.live.session import ENDED, Session, finding_rows
from wirewitness.analyser.tables.tables import TABLES as TABLES_OF_ALL
from wirewitness.app.cli.live_screen import committed, screen, share_rows
from wirewitness.reports.protocols.kafka.questions.groups import groups

TABLES = ("captures", "flows", "messages", "exchanges", "expert_infos", "findings")


class Listener:
    """Remembers what a session showed."""

    def __init__(self) -> None:
        self.news: list[tuple[str, dict[str, Any]]] = []
        self.exchanges: list[dict[str, Any]] = []
        self.lines: list[str] = []
        self.seen: Callable[[], None] = lambda: None

    def show(self, session: Session) -> None:
        self.news += [(news.what, dict(news.finding)) for news in session.news]
        self.lines += session.lines
        for batch in session.pipeline.fresh:
            self.exchanges += batch.to_pylist()
        self.seen()


def watch(path: Path, tables: tuple[str, ...] = TABLES, parts: int = 1) -> tuple[Session, Listener, Analysis]:
    """The sample through a pipe. parts: wait for an answer from a copy after each part of the bytes."""
    listener = Listener()
    session = Session(tables, ReadOptions(), Kept(), groups_of, listener.show, lambda _: None)
    session.pipeline.keep_fresh = True
    reader, writer = os.pipe()
    data = path.read_bytes()
    answered = threading.Event()
    listener.seen = lambda: answered.set() if session.answer_s is not None else None

    def write() -> None:
        for part in range(parts):
            with open(writer, "wb", closefd=part == parts - 1) as pipe:
                pipe.write(data[len(data) * part // parts : len(data) * (part + 1) // parts])
            if part < parts - 1:
                answered.wait(60)
                session.answer_s = None
                answered.clear()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        stream: Any = Watched(reader, session.step, lambda: session.stopping)
        return session, listener, session.run([Source(str(path), stream=stream)])
    finally:
        thread.join()
        os.close(reader)


def groups_of(analysis: Analysis) -> Any:
    return groups(analysis) if "kafka_offset_commits" in analysis.tables() else []


@pytest.mark.parametrize(
    "name",
    [
        "mqtt_takeover_loop",
        pytest.param("kafka_fenced_commit", marks=pytest.mark.exhaustive),
        *(
            pytest.param(name, marks=pytest.mark.lab)
            for name in ("kafka_share_streams", "mongo_shapes_and_errors", "mqtt_websocket")
        ),
    ],
)
def test_a_session_ends_with_what_reading_gives(name: str) -> None:
    path = SAMPLES / f"{name}.pcapng"
    session, listener, analysis = watch(path)
    with analysis, wirewitness.read(path, tables=TABLES) as whole:
        for table in TABLES:
            assert analysis.arrow(table).equals(whole.arrow(table)), table
        assert {f["finding_id"] for f in session.findings.rows()} == {f["finding_id"] for f in finding_rows(whole)}
        told = whole.arrow("exchanges").to_pylist()
    for row in [*told, *listener.exchanges]:
        row["cluster_id"] = None  # a stream cannot know it at once
    assert sorted(map(repr, listener.exchanges)) == sorted(map(repr, told))
    assert listener.lines == [ENDED]


@pytest.mark.parametrize(
    ("name", "protocol"),
    [("kafka_fenced_commit", "kafka"), ("mqtt_qos2_stuck", "mqtt"), ("mongo_healthy", "mongo")],
)
def test_a_session_in_lock_step_ends_with_what_reading_one_by_one_gives(name: str, protocol: str) -> None:
    """Live batches are small: without these thresholds nothing of them would be read together."""
    path = SAMPLES / f"{name}.pcapng"
    with lock_step(1) as read:
        session, _, analysis = watch(path, tables=tuple(TABLES_OF_ALL), parts=3)
    with analysis, lock_step(NEVER), wirewitness.read(path) as alone:
        assert differences(whole_of(analysis, str(path)), whole_of(alone, str(path))) == []
        told = {finding["finding_id"] for finding in finding_rows(alone)}
    assert {finding["finding_id"] for finding in session.findings.rows()} == told
    assert read[protocol] > 10


def test_findings_come_while_packets_come_and_only_once() -> None:
    path = SAMPLES / "kafka_stale_commit.pcapng"
    _, listener, analysis = watch(path, parts=2)
    with analysis:
        final = finding_rows(analysis)
    new = [(row["code"], row["subject"]) for what, row in listener.news if what == "new"]
    assert len(new) == len(set(new))
    assert {(row["code"], row["subject"]) for row in final} <= set(new)
    # In the first half: an offset went back. That an operator created topics (info) is told as well.
    assert next(row["code"] for _, row in listener.news if row["severity"] != "info") == "KAF103"


def test_exchanges_that_are_open_at_the_end_are_told_once() -> None:
    """The capture ends after a request: its row comes when all flows are ended."""
    name = SAMPLES / "mqtt_qos2_stuck.pcapng"
    _, listener, analysis = watch(name, tables=("exchanges", "findings"))
    with analysis:
        told = analysis.arrow("exchanges").column("exchange_id").to_pylist()
    assert sorted(row["exchange_id"] for row in listener.exchanges) == sorted(told)


@pytest.fixture(scope="module")
def finished() -> Any:
    session, _, analysis = watch(SAMPLES / "kafka_stale_commit.pcapng", tables=("findings",))
    session.view = groups(analysis)
    news = [News("new", row) for row in finding_rows(analysis)]
    analysis.close()
    return session, news


@pytest.mark.parametrize("size", [(60, 24), (80, 40), (160, 50), (40, 10)], ids=str)
def test_the_screen_fits(finished: Any, size: tuple[int, int], tmp_path: Path) -> None:
    session, news = finished
    width, height = size
    with (tmp_path / "shown").open("w") as file:
        console = Console(file=file, width=width, height=height, force_terminal=True, color_system=None)
        console.print(screen(session, "eth0 \x1b[31m", news, ["interface eth0 went away"], width, height))
    lines = (tmp_path / "shown").read_text().splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= height
    text = "\n".join(lines)
    for word in ("Produce", "critical KAF10", "eth0 \\x1b[31m", "interface eth0 went away"):
        assert word in text
    if height > 20:
        assert "payments-4" in text


def test_partitions_with_several_committers_stand_first(finished: Any) -> None:
    session, _ = finished
    rows = committed(session.view)
    assert [(group.group_id, state.partition) for group, state in rows[:2]] == [
        ("payments-ledger", 4),
        ("payments-ledger", 5),
    ]


@pytest.mark.parametrize(
    ("wanted", "room", "shares"),
    [
        pytest.param([5, 5, 5], 30, [5, 5, 5], id="enough"),
        pytest.param([20, 20, 20], 30, [10, 10, 10], id="equal shares"),
        pytest.param([3, 20, 40], 30, [3, 13, 14], id="what one leaves the others get"),
        pytest.param([0, 0, 50], 30, [0, 0, 30], id="one alone"),
    ],
)
def test_share_rows(wanted: list[int], room: int, shares: list[int]) -> None:
    assert share_rows(wanted, room) == shares
