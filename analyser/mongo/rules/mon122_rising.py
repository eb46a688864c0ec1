"""MON122 rising: replies, requests or latency of one query grow while the application asks the same.

Finds
    Commands of one shape whose latency rises with skip, with the size of the request or with time, whose replies grow,
    or whose requests do.

Why it matters
    What grows has no limit of its own: pages by skip read and throw away all that lies before them, a query without an
    index takes longer with each document that is inserted, an array in a document that is only appended to, a result
    without a limit or an $in with ever more values grow until the 16 MiB of a document or a time limit end it.

How it decides
    At least 32 commands of one shape of an application; their time, their skips and the sizes of their requests are cut
    into eighths. The medians of the eighths rise (rank correlation of 0.7 or more) and the last quarter is at least
    twice the first (times). The rise is no noise: latency by 2 ms (latency_ms) at least, sizes by 4 kB (kilobytes), of
    requests by 1 kB (request_kilobytes). Latency that rises with time counts where it rises twice as much as that of
    the other shapes at this server (a server that gets slower makes all of them slow); inserts are not judged. Of one
    shape one finding: skip first, then latency, replies, requests. A warning where latency came to 20 ms (warn_ms), or
    sizes to 64 kB (warn_kilobytes), or to half of that and four times what they were (much), or where lists of values
    in requests grew steadily (rank correlation of 0.9, steadily) by 2 kB or more (listed_kilobytes), which is some
    hundred values; else info.

False alarms
    A cache of the server that is filled with other data meanwhile.

What it cannot tell
    Whether an index is used; documents inserted before the capture are not counted.

References
    MongoDB manual: cursor.skip(), unbounded arrays, BSON document size.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import ms_text, seconds_text
from wirewitness.analyser.base.words import count, sentence_start
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
from wirewitness.analyser.mongo.rules.use import use_finding

TRENDS = "mongo_trends"
_ORDER = (("latency", "skip"), ("latency", "request"), ("latency", "time"), ("reply", "time"), ("request", "time"))
_NEXT = {
    ("latency", "skip"): "Page by the last value that was read (a filter on the sorted field, with limit) instead of "
    "by skip, which reads all that it skips.",
    ("latency", "request"): "Look at what the application collects into one command (values of $in, branches of $or), "
    "and send it in parts of a few hundred.",
    ("latency", "time"): "Run explain() on this shape and look for an index: what reads the whole collection takes "
    "longer with each document. Look at whether documents or lists in them grow.",
    ("reply", "time"): "Limit what is returned (limit, projection), and look at documents with arrays that are only "
    "appended to: move their elements to documents of their own.",
    ("request", "time"): "Look at what the application collects into one command (values of $in, an array that is "
    "written as a whole), and send it in parts.",
}


def detect(
    frames: Frames,
    *,
    times: float = 2.0,
    latency_ms: float = 2.0,
    kilobytes: float = 4.0,
    request_kilobytes: float = 1.0,
    warn_ms: float = 20.0,
    warn_kilobytes: float = 64.0,
    much: float = 4.0,
    steadily: float = 0.9,
    listed_kilobytes: float = 2.0,
) -> Iterator[Finding]:
    """One finding for each shape of this application."""
    shapes: dict[str | None, list[Row]] = {}
    for row in rows_of(frames[TRENDS]):
        is_latency = row["measure"] == "latency"
        scale, floor = (1.0, latency_ms) if is_latency else (1000.0, kilobytes)
        floor = request_kilobytes if row["measure"] == "request" else floor
        grown = row["ended"] / max(row["began"], 1e-9)
        if grown < times or row["ended"] - row["began"] < floor * scale:
            continue
        if is_latency and row["along"] == "time" and grown < times * max(row["others"] or 1.0, 1.0):
            continue
        shapes.setdefault(row["shape_id"], []).append(row)
    for rows in shapes.values():
        rows.sort(key=lambda row: _ORDER.index((row["measure"], row["along"])))
        is_warning = any(
            _is_much(row, warn_ms, warn_kilobytes * 1000, much) or _is_listing(row, listed_kilobytes * 1000, steadily)
            for row in rows
        )
        yield _finding(rows, is_warning)


def _is_much(row: Row, warn_ms: float, warn_bytes: float, much: float) -> bool:
    limit = warn_ms if row["measure"] == "latency" else warn_bytes
    return bool(row["ended"] >= limit or row["ended"] >= max(much * row["began"], limit / 2))


def _is_listing(row: Row, more_bytes: float, steadily: float) -> bool:
    """Does a query list ever more values?"""
    lists = "?array<" in (row["query_shape"] or "")
    return (
        row["measure"] == "request"
        and lists
        and row["ended"] - row["began"] >= more_bytes
        and row["rising"] >= steadily
    )


def _size(row: Row, value: float) -> str:
    return ms_text(value) if row["measure"] == "latency" else f"{value / 1000:,.1f} kB"


def _words(row: Row) -> str:
    what = {"latency": "its latency", "reply": "the size of its replies", "request": "the size of the requests"}
    with_what = {"skip": "with skip", "time": "with time", "request": "with the size of the request"}[row["along"]]
    return f"{what[row['measure']]} rises {with_what}, from {_size(row, row['began'])} to {_size(row, row['ended'])}"


def _cost(row: Row) -> Row:
    """What came on top of what it began with: of a steady rise half of it, on the average."""
    more = (row["ended"] - row["began"]) * row["commands"] / 2
    return {"wasted_ms" if row["measure"] == "latency" else "bytes": round(more, 3)}


def _finding(rows: list[Row], is_warning: bool) -> Finding:
    first, most = rows[0], rows[0]["skip_most"]
    skip = "" if first["along"] != "skip" or most is None else f" The largest skip is {most:,.0f}."
    inserted = max(row["inserted"] for row in rows)
    documents = f" Meanwhile {count(inserted, 'document was', 'documents were')} inserted there." if inserted else ""
    return use_finding(
        RULE,
        [first],
        severity="warning" if is_warning else "info",
        title=f"{command_title(first)} grows {first['ended'] / max(first['began'], 1e-9):,.1f} times: "
        f"{client_title(first)}",
        sentence=(
            f"{sentence_start(client_text(first))} sent {command_text(first)} to {server_text(first)} "
            f"{first['commands']:,} times in {seconds_text(first['ts_last'] - first['ts'])}: "
            f"{'; '.join(map(_words, rows))} (medians of the first and last quarter)."
            f"{skip}{documents}{shape_text(first['query_shape'])}"
        ),
        next_step=_NEXT[first["measure"], first["along"]],
        numbers={
            "kind": f"{first['measure']} by {first['along']}",
            "commands": first["commands"],
            "rising": round(first["rising"], 3),
            "began": round(first["began"], 3),
            "ended": round(first["ended"], 3),
            "others": first["others"],
            "skip_most": first["skip_most"],
            "inserted": inserted,
            **_cost(first),
        },
    )


RULE = Rule(
    code="MON122",
    question="growing",
    name="rising",
    severity="warning",
    confidence="medium",
    reads={
        TRENDS: (
            "ts", "ts_last", "driver_version", "database", "collection", "command", "shape_id", "query_shape",
            "measure", "along", "commands", "rising", "began", "ended", "skip_most", "others", "inserted",
            "exchange_id", "last_exchange_id",
        ),
    },
    partition_by=CLIENT_KEY,
    detect=detect,
    rows={TRENDS: "ended >= 2 * began AND NOT (command = 'insert' AND measure <> 'reply')"},
)  # fmt: skip
