"""Exchanges of one version with more elements than may be read at a time: in parts, or one by one."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest

from tests.dissectors.kafka.lockstep.talks import Said, frames_of
from tests.support.left_frames import feed_in_batches
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, CORE_ROWS, SERVER_TO_CLIENT, Frame, Row
from wirewitness.dissectors.kafka.decoder import KafkaDecoder
from wirewitness.dissectors.kafka.lockstep import groups
from wirewitness.dissectors.kafka.rows.fields import KAFKA_ROWS

OFFSET_COMMIT, HEARTBEAT = 8, 12
TABLES = (*CORE_ROWS, *KAFKA_ROWS)
BEATS = -1


def asked(topics: Sequence[int]) -> list[Frame]:
    """A connection that commits to no partition of so many topics each time, or sends a heartbeat (BEATS). The first
    exchange, a commit, is read alone."""
    said = []
    for number, count in enumerate((0, *topics)):
        if count == BEATS:
            head, body, answer = (HEARTBEAT, 0), struct.pack(">ih", 7, 0), b"\0\0"
        else:
            body = struct.pack(">ihqi", 7, 0, -1, count) + b"\0\1t\0\0\0\0" * count
            head, answer = (OFFSET_COMMIT, 2), b"\0\0\0\0"
        said.append(Said(CLIENT_TO_SERVER, struct.pack(">hhi", *head, number) + b"\0\1a\0\1g" + body))
        said.append(Said(SERVER_TO_CLIENT, struct.pack(">i", number) + answer))
    return frames_of(said, begins=True, cut=False)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """API, how many exchanges were tried, and of how many columns came: -1 where they had too many elements."""
    found: list[tuple[int, int, int]] = []
    group = groups._group

    def counted(batch, strings, api, rows, *more):  # type: ignore[no-untyped-def]
        found.append((api[0], len(rows), -1))
        of = group(batch, strings, api, rows, *more)
        found[-1] = api[0], len(rows), len(of or ())
        return of

    monkeypatch.setattr(groups, "_group", counted)
    return found


def rows_of(topics: Sequence[int], sizes: Sequence[int], *, later: bool) -> dict[str, list[Row]]:
    return feed_in_batches([KafkaDecoder(Limits())], [asked(topics)], sizes, TABLES, later=later)[0][0]


@pytest.mark.parametrize(
    ("topics", "most", "parts"),
    [
        pytest.param([10] * 200, 2000, {200: 200}, id="not too many"),
        pytest.param([10] * 200, 1999, {200: -1, 100: 100}, id="in halves"),
        pytest.param([10] * 200, 600, {200: -1, 100: -1, 50: 50}, id="halves of halves"),
        pytest.param([10] * 48, 479, {48: -1, 24: 24}, id="the least that are split"),
        pytest.param([10] * 47, 469, {47: -1}, id="too few to be split"),
    ],
)
def test_too_many_elements(
    topics: list[int], most: int, parts: dict[int, int], tried: list[tuple[int, int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """parts: what came of so many exchanges, each time that so many were tried."""
    monkeypatch.setattr(groups, "MAX_ELEMENTS", most)
    together, alone = (rows_of(topics, [], later=later) for later in (True, False))
    assert {(OFFSET_COMMIT, count, came) for count, came in parts.items()} == set(tried)
    assert sum(came for _, _, came in tried if came > 0) in (0, len(topics))
    assert together == alone
    assert len(alone["exchanges"]) == 1 + len(topics)


@pytest.mark.parametrize(
    ("topics", "most", "parts"),
    [
        pytest.param(
            [1] * 100 + [100] * 60, 1000, [(160, -1), (80, 80), (80, -1), (40, -1), (40, -1)], id="some hold too many"
        ),
        pytest.param([10] * 400, 9, [(400, -1), (200, -1), (100, -1), (50, -1), (25, -1)], id="the rest is given up"),
    ],
)
def test_what_holds_too_many_is_read_one_by_one(
    topics: list[int], most: int, parts: list[tuple[int, int]], tried: list[tuple[int, int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(groups, "MAX_ELEMENTS", most)
    together, alone = (rows_of(topics, [], later=later) for later in (True, False))
    assert tried == [(OFFSET_COMMIT, *part) for part in parts]
    assert together == alone


def test_a_version_that_was_given_up_is_left_alone(
    tried: list[tuple[int, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next batch does not try it again, not even with few elements; other APIs of the connection it does."""
    monkeypatch.setattr(groups, "MAX_ELEMENTS", 400)
    topics = [*[10] * 47, *[BEATS] * 100, *[1] * 100, *[BEATS] * 100]
    together, alone = (rows_of(topics, [2 * 148], later=later) for later in (True, False))
    assert tried == [(OFFSET_COMMIT, 47, -1), (HEARTBEAT, 100, 100), (HEARTBEAT, 100, 100)]
    assert together == alone
