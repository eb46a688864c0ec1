"""MON126 lost-update: two applications read a document and write it back, and one write is lost.

Finds
    Writes of whole values by _id from a state of the document that another application had changed since.

Why it matters
    Both writes succeed, and what the first one wrote is gone: the second one was made from what the document was before
    it. No error tells it; stocks, counters and balances are wrong afterwards.

How it decides
    Two applications (address and name) each read a document by its _id and then update it by its _id alone, with a
    document that replaces it or with the same fields of $set, no operators that reckon ($inc and their like), outside
    of transactions. The other's write lies whole between the reply of the last read of this application and its own
    write, and it had read the document itself. A warning from 2 of them on (least), info from the first; one finding
    for each collection.

False alarms
    Fields that both set to the same value.

What it cannot tell
    Threads of one application: their reads cannot be told apart.

References
    MongoDB manual: update operators, findAndModify, transactions; "optimistic concurrency": a version in the filter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import server_text, who_is
from wirewitness.analyser.base.times import NS_PER_MS, ms_text
from wirewitness.analyser.base.words import count, printable, times
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import MAX_NAME, TITLE_NAME, client_numbers, namespace

OVERWRITTEN = "mongo_overwritten"


def detect(frames: Frames, *, least: int = 2) -> Iterator[Finding]:
    """At most one finding for this collection."""
    rows = rows_of(frames[OVERWRITTEN])
    if rows:
        yield _finding(rows, is_warning=len(rows) >= least)


def _finding(rows: Sequence[Row], is_warning: bool) -> Finding:
    first = rows[0]
    names = dict.fromkeys(
        who_is(name, address, kind="application", most=MAX_NAME)
        for row in rows
        for name, address in (
            (row["app_name"], row["client_address"]), (row["lost_app_name"], row["lost_address"])
        )
    )  # fmt: skip
    documents = len({row["document_id"] for row in rows})
    old = [(row["ts"] - row["ts_read"]) / NS_PER_MS for row in rows]
    place = namespace(first)
    clients = {
        (row["client_address"], row["app_name"], row["driver"]): client_numbers({**row, "driver_version": None})
        for row in rows
    }
    more = f" (and {len(names) - 2} more)" if len(names) > 2 else ""
    what = "document" if documents == 1 else f"{documents:,} documents"
    return RULE.finding(
        severity="warning" if is_warning else "info",
        subject={"server": server_text(first), "where": place},
        title=f"{count(len(rows), 'write')} lost: {printable(place or '?', TITLE_NAME)} overwritten from an old state",
        sentence=(
            f"{' and '.join([*names][:2])}{more} read and write back the same {what} of {place} at "
            f"{server_text(first)}: {times(len(rows))} a write replaced what another one had written since it was "
            f"read, up to {ms_text(max(old))} before."
        ),
        next_step=(
            "Let the server reckon ($inc, $push, a pipeline), or put what was read (a version) into the filter of the "
            "update and try again when nothing matches; else read and write in one transaction."
        ),
        proof=Proof(
            min(row["ts_read"] for row in rows),
            max(row["ts"] for row in rows),
            (
                Evidence(None, None, one)
                for row in rows
                for one in (row["read_exchange_id"], row["lost_exchange_id"], row["exchange_id"])
            ),
        ),
        numbers={
            "where": place,
            "writes": len(rows),
            "records_lost": len(rows),
            "documents": documents,
            "oldest_ms": round(max(old), 3),
            "clients": [*clients.values()],
        },
    )


RULE = Rule(
    code="MON126",
    question="concurrent",
    name="lost-update",
    severity="warning",
    confidence="high",
    reads={
        OVERWRITTEN: (
            "ts", "client_address", "app_name", "driver", "document_id", "exchange_id", "read_exchange_id", "ts_read",
            "lost_exchange_id", "lost_address", "lost_app_name",
        ),
    },
    partition_by=("server_address", "server_port", "database", "collection"),
    detect=detect,
)  # fmt: skip
