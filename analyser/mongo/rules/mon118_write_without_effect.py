"""MON118 write-without-effect: updates, deletes or findAndModify that succeed and change nothing.

Finds
    Applications whose writes of one shape are answered with ok and change no document, nearly all of them.

Why it matters
    No error is raised anywhere: the application takes its data for written, changed or deleted. The filter asks for
    documents that are not there (another type of _id, another collection or database, a field that was renamed), a
    condition on a version fails all the time, or what is written is there already.

How it decides
    Of at least 20 successful commands (least) of one shape and application at least nine tenths (share) had no effect:
    n of the reply is 0, or nModified is 0 and nothing was upserted. An upsert that finds its document has its effect.
    Commands that name documents, with other values each time, are told at any pace. Those that search for what is due,
    repeat the same values, or ask for the old value of what they set (a lease, a lock), are told where one comes within
    half a second (poll_s) of the other on the average: a worker that looks once a second whether there is work is
    healthy, and so is one that asks for a lease which another one holds.

False alarms
    Deletes of what may be there, as of a cache. A job that writes everything again to be sure.

What it cannot tell
    Whether the documents exist in another collection or under another type.

References
    MongoDB manual: update, delete and findAndModify commands, fields n and nModified of their replies.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_S, ms_text, seconds_text
from wirewitness.analyser.base.words import sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    CLIENT_KEY,
    client_text,
    client_title,
    command_text,
    command_title,
    shape_text,
)
from wirewitness.analyser.mongo.rules.use import (
    USE,
    USE_COLUMNS,
    compares_and_sets,
    every_ms,
    names_documents,
    use_finding,
)


def detect(frames: Frames, *, least: int = 20, share: float = 0.9, poll_s: float = 0.5) -> Iterator[Finding]:
    """One finding for each shape of this application."""
    for row in rows_of(frames[USE]):
        if row["succeeded"] < least or row["without_effect"] < share * row["succeeded"]:
            continue
        if _names_what_it_writes(row) or every_ms(row) < poll_s * 1000:
            yield _finding(row)


def _names_what_it_writes(row: Row) -> bool:
    named = row["command"] in ("update", "delete") and names_documents(row)
    return named and not compares_and_sets(row["query_shape"])


def _finding(row: Row) -> Finding:
    unmatched = row["command"] != "update" or row["unmatched"] * 2 > row["without_effect"]
    what = "matched no document" if unmatched else "changed nothing: what they write was there already"
    return use_finding(
        RULE,
        [row],
        severity="warning",
        title=f"{row['without_effect']:,} of {row['succeeded']:,} without effect: {command_title(row)}, by "
        f"{client_title(row)}",
        sentence=(
            f"{sentence_start(client_text(row))} sent {command_text(row)} to {server_text(row)} {row['commands']:,} "
            f"times in {seconds_text(row['ts_last'] - row['ts'])}, one each {ms_text(every_ms(row))}; "
            f"{row['succeeded']:,} succeeded, and {row['without_effect']:,} of these {what}."
            f"{shape_text(row['query_shape'])}"
        ),
        next_step=(
            "Compare the filter with a document of the collection: names and types of its fields (a text is no number "
            "and no ObjectId), database and collection. Let the application look at matchedCount and modifiedCount."
            if unmatched
            else "Write only what changed, or leave these writes out: the application sends the same values again."
        ),
        numbers={
            "commands": row["commands"],
            "without_effect": row["without_effect"],
            "unmatched": row["unmatched"],
            "every_ms": round(every_ms(row), 3),
            "lasted_s": round((row["ts_last"] - row["ts"]) / NS_PER_S, 3),
            "wasted_ms": round(row["latency_sum_ms"] * row["without_effect"] / row["commands"], 3),
        },
    )


_WRITES = "('update', 'delete', 'findAndModify', 'findandmodify')"
RULE = Rule(
    code="MON118",
    question="repeated",
    name="write-without-effect",
    severity="warning",
    confidence="high",
    reads={USE: (*USE_COLUMNS, "without_effect", "unmatched", "same", "latency_sum_ms")},
    partition_by=CLIENT_KEY,
    detect=detect,
    rows={USE: f"command IN {_WRITES} AND succeeded >= 20 AND without_effect >= 0.9 * succeeded"},
)
