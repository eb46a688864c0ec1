"""KAF212 feed-silent: a producer that wrote all the time writes no more, and its connection stays open.

Finds
    Producers that sent batches at a steady pace, and then none up to the capture's end, while others went on.

Why it matters
    Nothing fails: no error, no lag, no timeout. What reads the topic sees an idle feed. The process hangs, waits for
    its own source, or has lost the thread that sends; it is found when somebody misses the data.

How it decides
    At least `least` Produce requests, none further apart than `steady` times the mean gap. Since the last one
    `gaps` times its longest gap went by, and `share` of the time over which it had written before. All its requests are
    answered, the connections on which it wrote last are open, and no quota held it back. It reads nothing itself, nor
    does another client at its address: the pace of who copies is that of its input. More than half of the other
    producers that wrote when it stopped still wrote in the end, so it is no common stop.
    Confidence medium: a source may have nothing to say. Provisional: it may write again.

False alarms
    Jobs that are done and keep their producer open.

What it cannot tell
    Why it is silent. What it sends elsewhere (another cluster, another protocol) is not asked for. A producer that
    began to be silent before the capture is not found. Of responses alone, and of a request log, nothing is said.

References
    Producer metrics record-send-rate and record-queue-time-avg; a thread dump of the process.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, moment_text, ms_text, seconds_text, time_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.connections import CONNECTIONS, client_keys, client_subject
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text

REQUESTS = "kafka_client_requests"
_LEAST = 50


class _Silent(NamedTuple):
    row: Row
    until: int
    others: int

    @property
    def lasts(self) -> int:
        return int(self.until - self.row["ts_last"])


def detect(
    frames: Frames, *, least: int = _LEAST, steady: float = 30.0, gaps: float = 10.0, share: float = 0.25
) -> Iterator[Finding]:
    """One finding for each client."""
    connections, requests = rows_of(frames[CONNECTIONS]), rows_of(frames[REQUESTS])
    ends = [row["all_seen_until"] for row in connections if row["all_seen_until"] is not None]
    if not ends:
        return
    until = max(ends)
    readers = {row["client_address"] for row in requests if row["operation"] == "Fetch"}
    writers = [row for row in requests if row["operation"] == "Produce" and row["requests"] >= least]
    connections_of = _connections_of(connections)
    began = sorted(row["ts"] for row in writers)
    going_on = _GoingOn(writers, until)
    for row in writers:
        if row["client_address"] in readers or row["errors"] or not _is_steady(row, steady):
            continue
        silent_ns = until - row["ts_last"]
        if silent_ns < max(gaps * row["longest_gap_ms"] * NS_PER_MS, share * (row["ts_last"] - row["ts"])):
            continue
        beside = bisect_left(began, row["ts_last"]) - (row["ts"] < row["ts_last"])
        others = going_on.behind(row["ts_last"])
        own = connections_of.get(_who(row))
        if own is not None and own.are_open(row["ts_last"]) and 2 * others > beside:
            yield _finding(_Silent(row, until, others))


class _GoingOn:
    """Of clients that had begun before one fell silent those that went on for three quarters of its silence."""

    def __init__(self, rows: Sequence[Row], until: int) -> None:
        # Silences that each of them is counted for begin behind the one and before the other.
        counted = [(row["ts"], until - 4 * (until - row["ts_last"])) for row in rows]
        self._since = sorted(since for since, before in counted if since < before)
        self._before = sorted(before for since, before in counted if since < before)

    def behind(self, last: int) -> int:
        """How many, of a silence that began then."""
        return bisect_left(self._since, last) - bisect_right(self._before, last)


class _Connections(NamedTuple):
    """Of one client. closed: when the last one that ended did."""

    all_answered: bool
    closed: int | None

    def are_open(self, last: int) -> bool:
        """Nothing is due on any of them, and what closed before the last batch was another one."""
        return self.all_answered and (self.closed is None or self.closed < last)


def _connections_of(rows: Sequence[Row]) -> dict[tuple[str | None, str | None], _Connections]:
    """By client. A request log shows no ends, and no ACKs either."""
    found: dict[tuple[str | None, str | None], _Connections] = {}
    for row in rows:
        is_answered = row["acked_by_server"] is not None and not (row["unanswered"] or row["throttled"])
        own = found.get(_who(row), _Connections(all_answered=True, closed=None))
        closed = max((one for one in (own.closed, row["ts_closed"]) if one is not None), default=None)
        found[_who(row)] = _Connections(own.all_answered and is_answered, closed)
    return found


def _who(row: Row) -> tuple[str | None, str | None]:
    return row["client_address"], row["client_id"]


def _mean_ms(row: Row) -> float:
    return float((row["ts_last"] - row["ts"]) / NS_PER_MS / max(row["requests"] - 1, 1))


def _is_steady(row: Row, steady: float) -> bool:
    return row["longest_gap_ms"] is not None and row["longest_gap_ms"] <= steady * _mean_ms(row)


def _finding(found: _Silent) -> Finding:
    row = found.row
    lasts = seconds_text(found.lasts)
    return RULE.finding(
        provisional=True,
        title=f"Writes no more for {lasts}: {client_title(row)}",
        subject=client_subject(row),
        sentence=f"{sentence_start(client_text(row))} has written nothing since {moment_text(row['ts_last'])}, for "
        f"{lasts}; before, it sent {count(row['requests'], 'Produce request')}, one each "
        f"{ms_text(_mean_ms(row))} on average, and never paused for more than {ms_text(row['longest_gap_ms'])}. "
        f"All were answered, its connection stays open, and {count(found.others, 'other producer')} went on.",
        next_step="Look what this process does (a thread dump), and whether its own source has something to say; watch "
        "its record-send-rate.",
        proof=Proof(row["ts_last"], found.until, evidence_of_ids((row["exchange_id"], row["last_exchange_id"]))),
        numbers={
            **client_keys(row),
            "requests": row["requests"],
            "seconds": round(found.lasts / NS_PER_S, 3),
            "usual_ms": round(_mean_ms(row), 3),
            "longest_ms": row["longest_gap_ms"],
            "others": found.others,
            "since": time_text(row["ts_last"]),
            "until": time_text(found.until),
            "clients": [client_numbers(row, requests=row["requests"])],
        },
    )


RULE = Rule(
    code="KAF212",
    question="stalled",
    name="feed-silent",
    severity="warning",
    confidence="medium",
    reads={
        REQUESTS: (
            "ts", "ts_last", "client_id", "client_address", "operation", "requests", "errors", "longest_gap_ms",
            "exchange_id", "last_exchange_id",
        ),
        CONNECTIONS: (
            "ts", "client_id", "client_address", "ts_closed", "closed_by", "unanswered", "throttled", "all_seen_until",
            "acked_by_server",
        ),
    },
    partition_by=("cluster_id",),
    detect=detect,
    rows={REQUESTS: "operation IN ('Fetch', 'Produce')"},
    suspects=AnyRow(REQUESTS, f"operation = 'Produce' AND requests >= {_LEAST}"),
    signs={"exchanges": f"count(*) FILTER (protocol = 'kafka' AND operation = 'Produce') >= {_LEAST}"},
)  # fmt: skip
