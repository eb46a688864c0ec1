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

from collections.abc import Iterator
from typing import NamedTuple

from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, moment_text, ms_text, seconds_text, time_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.limits import compared
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
    for row in writers:
        if row["client_address"] in readers or row["errors"] or not _is_steady(row, steady):
            continue
        silent_ns = until - row["ts_last"]
        if silent_ns < max(gaps * row["longest_gap_ms"] * NS_PER_MS, share * (row["ts_last"] - row["ts"])):
            continue
        compared(len(connections) + len(writers))
        own = [one for one in connections if _who(one) == _who(row)]
        beside = [one for one in writers if one is not row and one["ts"] < row["ts_last"]]
        going_on = [one for one in beside if one["ts_last"] > until - silent_ns / 4]
        if own and all(_is_open(one, row["ts_last"]) for one in own) and 2 * len(going_on) > len(beside):
            yield _finding(_Silent(row, until, len(going_on)))


def _who(row: Row) -> tuple[str | None, str | None]:
    return row["client_address"], row["client_id"]


def _mean_ms(row: Row) -> float:
    return float((row["ts_last"] - row["ts"]) / NS_PER_MS / max(row["requests"] - 1, 1))


def _is_steady(row: Row, steady: float) -> bool:
    return row["longest_gap_ms"] is not None and row["longest_gap_ms"] <= steady * _mean_ms(row)


def _is_open(row: Row, last: int) -> bool:
    """Nothing is due on it, and what closed before the last batch was another one. A request log shows no ends, and no
    ACKs either."""
    closed_after = row["ts_closed"] is not None and row["ts_closed"] >= last
    return row["acked_by_server"] is not None and not (closed_after or row["unanswered"] or row["throttled"])


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
