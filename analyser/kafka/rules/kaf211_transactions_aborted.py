"""KAF211 transactions-aborted: a producer's transactions end in abort, one after the other.

Finds
    Transactional ids of which the last transactions of the capture were all aborted, and those that had a long run of
    aborts before they came back to commit.

Why it matters
    What an aborted transaction wrote nobody gets who reads committed records, and its offsets are not stored: the
    application does its work again and again, and gets nowhere. The records stay in the log all the same, and readers
    that read uncommitted records get them each time.

How it decides
    Transactions of one transactional id in their order, as they were ended: by EndTxn, by a new InitProducerId of the
    same id (a producer that starts anew aborts what the one before left open), or by markers. `last_least` aborted ones
    without a commit behind them are a finding, and `run_least` in a row at any time; those of unknown outcome do not
    count. Aborts now and then are what a transaction is for.
    Confidence high: the requests and their answers are on the wire.

False alarms
    Tests that abort on purpose; applications that look whether they may commit by trying.

What it cannot tell
    Why the application aborts: the reason is in its log, often an exception while it handles a record. Transactions
    that the coordinator aborted by their timeout are known when their producer is refused (KAF201) or starts anew. Of
    one direction alone nothing is said.

References
    KIP-98; KIP-447 (offsets in transactions); abortTransaction of producers; isolation.level of consumers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from wirewitness.analyser.base.times import moment_text, period_text, time_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text
from wirewitness.analyser.kafka.rules.producers import evidence_of, records_in, transactional_text

SPANS = "kafka_transaction_spans"
_LAST, _RUN = 5, 10
_MOST = 20
_HOW = {
    "end_txn": "by its own EndTxn",
    "init_producer_id": "by a new InitProducerId of the same transactional id",
    "write_txn_markers": "by its coordinator",
}


def detect(frames: Frames, *, last_least: int = _LAST, run_least: int = _RUN) -> Iterator[Finding]:
    """At most one finding for a transactional id: its last run of aborts, else its longest."""
    rows = sorted(rows_of(frames[SPANS]), key=lambda row: (row["ts_ended"], row["exchange_id"]))
    runs = [list(run) for _, run in groupby(rows, key=lambda row: row["outcome"])]
    last = runs[-1] if runs and runs[-1][0]["outcome"] == "aborted" else []
    longest = max((run for run in runs if run[0]["outcome"] == "aborted"), key=len, default=[])
    if len(last) >= last_least:
        yield _finding(last, rows, goes_on=True)
    elif len(longest) >= run_least:
        yield _finding(longest, rows, goes_on=False)


def _finding(run: Sequence[Row], rows: Sequence[Row], *, goes_on: bool) -> Finding:
    first, last = run[0], run[-1]
    records, committed = records_in(run), sum(row["outcome"] == "committed" for row in rows)
    how = Counter(_HOW.get(row["ended_by"], "by its coordinator") for row in run)
    ways = names_text([f"{number:,} {text}" if len(how) > 1 else text for text, number in how.most_common()], 3)
    key = {"cluster": first["cluster_id"], "transactional_id": first["transactional_id"]}
    name = transactional_text(first["transactional_id"])
    before = [row for row in rows if row["outcome"] == "committed" and row["ts_ended"] < first["ts_ended"]]
    since = f"; the last commit before was at {moment_text(before[-1]['ts_ended'])}" if before else ""
    groups = sorted({row["group_id"] for row in run if row["group_id"]})
    stored = f" Offsets of group {printable(groups[0], 80)} that were part of them are not stored." if groups else ""
    return RULE.finding(
        provisional=goes_on,
        subject=key,
        title=f"{count(len(run), 'transaction')} aborted one after the other: {client_title(last)}",
        sentence=f"{sentence_start(client_text(last))} ({name}) has had {count(len(run), 'transaction')} aborted in a "
        f"row, {ways}, {period_text(first['ts'], last['ts_ended'])}, with {count(records, 'record')} that no reader of "
        f"committed records gets{since}{'' if goes_on or not committed else '; later ones were committed'}.{stored}",
        next_step="Look in the application's log for the exception that makes it abort: often one record that it can't "
        "handle, or a call inside of the transaction that fails. Put such a record aside, and raise "
        "transaction.timeout.ms where the work takes longer.",
        proof=Proof(first["ts"], last["ts_ended"], evidence_of([*run[: _MOST // 2], *run[-_MOST // 2 :]])),
        numbers={
            **key,
            "client_id": last["client_id"],
            "aborted": len(run),
            "aborted_all": sum(row["outcome"] == "aborted" for row in rows),
            "committed": committed,
            "records": records,
            "goes_on": goes_on,
            "ended_by": sorted({row["ended_by"] for row in run if row["ended_by"]}),
            "since": time_text(first["ts"]),
            "until": time_text(last["ts_ended"]),
            "clients": [client_numbers(row) for row in {row["client_address"]: row for row in run}.values()][:_MOST],
        },
    )


RULE = Rule(
    code="KAF211",
    question="repeated",
    name="transactions-aborted",
    severity="warning",
    confidence="high",
    reads={
        SPANS: (
            "ts", "ts_ended", "exchange_id", "client_id", "client_address", "outcome", "ended_by", "records_count",
            "group_id", "file", "request_packet",
        ),
    },
    partition_by=("cluster_id", "transactional_id"),
    detect=detect,
    rows={SPANS: "outcome IN ('committed', 'aborted') AND ts_ended IS NOT NULL AND transactional_id IS NOT NULL"},
    suspects=f"""
        SELECT cluster_id, transactional_id FROM r_{SPANS} GROUP BY ALL
        HAVING count(*) FILTER (outcome = 'aborted') >= {min(_LAST, _RUN)}""",
)  # fmt: skip
