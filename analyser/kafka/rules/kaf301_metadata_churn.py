"""KAF301 metadata-churn: a client asks for metadata all the time, or leaders change again and again.

Finds
    A client that sends more than one Metadata request a second for `window_s` seconds, and partitions whose leader
    changes `changes_least` times within `flap_s`. One finding for each client.

Why it matters
    A client refreshes its metadata when a request fails because a leader moved (5, 6, 74, 75), a topic is gone (3), or
    a connection broke. Once is normal. Again and again it means that what the client is told does not work for it, or
    that leaders do not come to rest: nothing is written or read meanwhile, and all clients together are a load of their
    own.

How it decides
    Requests are counted in windows; the densest one must have more than `window_s` of them, in half of its seconds: a
    burst while a leader moves is over at once. Where nine of ten are answered with an error the name itself is
    wrong, which KAF313 says; where most go on connections of their own KAF314 speaks. Leaders are those that this
    client was told; "none" does not count. Errors of other requests that say the same (5, 6, 74, 75) are counted
    beside.
    A warning where leaders change or `failed_least` requests fail because they moved; info for a client that only asks
    often: some are set so. Leaders that move once each, as in a rolling restart, are silent.
    Confidence high.

False alarms
    Tools that ask for metadata to watch a cluster, once a second or more.

What it cannot tell
    Why a client asks, unless another request of it fails at that time. Leaders that change between two questions of
    a client count once.

References
    Kafka protocol errors; Metadata; retry.backoff.ms and metadata.max.age.ms of clients.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from wirewitness.analyser.base.times import NS_PER_S, clock_text, seconds_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, names_text, sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text, place
from wirewitness.analyser.kafka.rules.producers import evidence_of

EXCHANGES, TOLD = "exchanges", "kafka_partitions"
KEYS = ("cluster_id", "client_address", "client_id")
MOVED = (5, 6, 74, 75)
_MOSTLY = 0.9
# All the time: in so large a part of the window's seconds. A burst while one leader moves is over at once.
_SPREAD = 0.5


class _Flap(NamedTuple):
    """A partition whose leader changed again and again: the rows that told another leader."""

    partition: str
    rows: list[Row]


def detect(
    frames: Frames,
    *,
    window_s: float = 30.0,
    changes_least: int = 3,
    flap_s: float = 300.0,
    failed_least: int = 3,
) -> Iterator[Finding]:
    """At most one finding for the client."""
    rows, told = rows_of(frames[EXCHANGES]), rows_of(frames[TOLD])
    asked = [row for row in rows if row["operation"] == "Metadata"]
    failed = [row for row in rows if row["error_code"] in MOVED and row["operation"] != "Metadata"]
    densest = _densest(asked, window_s)
    failing = sum(row["status"] == "error" for row in densest) > _MOSTLY * len(densest)
    if failing or _by_connection(densest) or not _is_spread(densest, window_s):
        densest = []
    flaps = list(_flaps(told, changes_least, round(flap_s * NS_PER_S)))
    if densest or flaps:
        yield _finding(
            (densest or [row for flap in flaps for row in flap.rows])[0], densest, flaps, failed, failed_least
        )


def _densest(asked: Sequence[Row], window_s: float) -> list[Row]:
    """The requests of the window that has most; none where it has one a second or fewer."""
    stamps = [row["ts"] for row in asked]
    length = round(window_s * NS_PER_S)
    spans = [(bisect_right(stamps, stamp + length) - first, first) for first, stamp in enumerate(stamps)]
    most, first = max(spans, key=lambda span: (span[0], -span[1]), default=(0, 0))
    return list(asked[first : first + most]) if most > window_s else []


def _is_spread(asked: Sequence[Row], window_s: float) -> bool:
    return len({row["ts"] // NS_PER_S for row in asked}) >= _SPREAD * window_s


def _by_connection(asked: Sequence[Row]) -> bool:
    """Most of them are the first of a connection: who connects anew for everything has to ask anew."""
    return 2 * len({row["flow_id"] for row in asked}) > len(asked)


def _flaps(told: Sequence[Row], least: int, length: int) -> Iterator[_Flap]:
    by_partition: dict[tuple[str, int], list[Row]] = {}
    for row in told:
        by_partition.setdefault((row["topic"], row["partition"]), []).append(row)
    for rows in by_partition.values():
        changes = [new for old, new in pairwise(rows) if old["leader_id"] != new["leader_id"]]
        newest = [row for row in changes if row["ts"] <= changes[0]["ts"] + length] if changes else []
        if len(newest) >= least:
            yield _Flap(place(rows[0]), changes)


def _finding(
    first: Row, densest: Sequence[Row], flaps: Sequence[_Flap], failed: Sequence[Row], failed_least: int
) -> Finding:
    changes = [row for flap in flaps for row in flap.rows]
    rows = sorted([*densest, *changes], key=lambda row: row["ts"])
    since, until = rows[0]["ts"], rows[-1]["ts"]
    errors = Counter(row["error_name"] or str(row["error_code"]) for row in failed)
    key = {"cluster": first["cluster_id"], "address": first["client_address"], "client_id": first["client_id"]}
    who, parts = client_text(first), []
    if densest:
        length = max(densest[-1]["ts"] - densest[0]["ts"], 1)
        parts.append(
            f"{who} asked for metadata {times(len(densest))} in {seconds_text(length)} from {clock_text(since)} on, "
            f"{len(densest) * NS_PER_S / length:.1f} a second"
        )
    if flaps:
        leaders = sorted({row["leader_id"] for row in changes})
        parts.append(
            f"{'it' if densest else who} learned of {count(len(changes), 'change')} of leader of "
            f"{names_text([flap.partition for flap in flaps], 3)} between brokers {', '.join(map(str, leaders))}"
        )
    if errors:
        parts.append(
            f"{count(errors.total(), 'request')} of this client failed because a leader had moved "
            f"({', '.join(f'{number} {name}' for name, number in errors.most_common(4))})"
        )
    return RULE.finding(
        severity="warning" if flaps or len(failed) >= failed_least else "info",
        subject=key,
        title=_title(first, densest, flaps, len(changes)),
        sentence=f"{'. '.join(map(sentence_start, parts))}.",
        next_step=(
            "Look which of the advertised brokers it cannot use (KAF310, KAF303, TCP104), and why leaders move: logs "
            "of the controller and of these brokers, disks, long pauses. Raise retry.backoff.ms (retry.backoff.max.ms) "
            "of a client that asks without a pause."
        ),
        proof=Proof(since, until, _evidence(rows)),
        numbers={
            **key,
            "clients": [client_numbers(first)],
            "requests": len(densest),
            "leader_changes": len(changes),
            "partitions": [flap.partition for flap in flaps][:100],
            "brokers": sorted({row["leader_id"] for row in changes}),
            "errors": dict(errors),
            "since": time_text(since),
            "until": time_text(until),
            "where": names_text([flap.partition for flap in flaps], 3) or None,
        },
    )  # fmt: skip


def _title(first: Row, densest: Sequence[Row], flaps: Sequence[_Flap], changes: int) -> str:
    if flaps:
        where = first_of(flap.partition for flap in flaps)
        return f"{count(changes, 'leader change')} of {where}, seen by {client_title(first)}"
    length = seconds_text(max(densest[-1]["ts"] - densest[0]["ts"], 1))
    return f"{count(len(densest), 'Metadata request')} in {length} by {client_title(first)}"


def _evidence(rows: Sequence[Row]) -> list[Evidence]:
    asked = [row for row in rows if "status" in row]
    requests = (Evidence(row["request_file"], row["request_packet"], row["exchange_id"]) for row in asked)
    return [*requests, *evidence_of([row for row in rows if "status" not in row])]


RULE = Rule(
    code="KAF301",
    question="repeated",
    name="metadata-churn",
    severity="warning",
    confidence="high",
    reads={
        EXCHANGES: (
            "ts", "exchange_id", "flow_id", "operation", "status", "error_code", "error_name", "request_file",
            "request_packet",
        ),
        TOLD: ("ts", "exchange_id", "topic", "partition", "leader_id", "file", "request_packet"),
    },
    partition_by=KEYS,
    detect=detect,
    rows={
        EXCHANGES: f"protocol = 'kafka' AND (operation = 'Metadata' OR error_code IN {MOVED})",
        TOLD: "partition IS NOT NULL AND leader_id >= 0",
    },
    suspects=(
        f"SELECT {', '.join(KEYS)} FROM r_{EXCHANGES} WHERE operation = 'Metadata' GROUP BY {', '.join(KEYS)} "
        f"HAVING count(*) > 30 UNION ALL SELECT {', '.join(KEYS)} FROM r_{TOLD} "
        f"GROUP BY {', '.join(KEYS)}, topic, partition HAVING count(DISTINCT leader_id) > 1 AND count(*) > 3"
    ),
)  # fmt: skip
