"""KAF340 record-times: a producer gives its records times that are not those of the others.

Finds
    Clients whose record times are minutes, hours or decades off the packets that carry them: a clock or time zone that
    is wrong, seconds or microseconds where milliseconds are due, no time at all.

Why it matters
    Retention goes by these times: records that seem old are deleted within minutes, and one record in the future keeps
    its whole segment. Windows and joins of stream processing drop records that seem late, and wait for nothing behind
    one that seems early. Searches by time (ListOffsets) lead to other places.

How it decides
    By each client and topic, from `batches_least` batches on (`kafka_record_times`): packet time minus the time of the
    batch's first record. Times that are right when they are read as seconds, microseconds or nanoseconds are in the
    wrong unit; times of 0 throughout are none. Else they are off when the median is `off_s` or more and `times_others`
    times that of the nearest other writer of the cluster, and steady: 90 % of batches lie within `steady` of the median
    around it, and the times move on as fast as the packets do. Old times that do not keep pace with the packets
    (backfills, replays, mirrors that catch up) are silent, as are topics whose broker sets the time itself
    (LogAppendTime), and captures in which all writers are off alike: that is the clock of the capture.
    warning for a wrong unit, no times, times in the future, an offset of whole quarters of an hour (a time zone), or
    where others write the same topic with right times; else info: it may be meant.

False alarms
    Relays that pass records on after a fixed delay with the times that these had. Where one client alone writes, it may
    be the clock of the capture that is wrong.

What it cannot tell
    Of answers alone nothing is said: the times stand in requests. Topics' settings are not in packets: whether the
    broker sets the time itself is known from its answers, from Produce version 2 on.

References
    message.timestamp.type, message.timestamp.before.max.ms and after.max.ms, retention.ms of topics (KIP-32, KIP-937).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from math import inf
from operator import itemgetter
from statistics import median

from wirewitness.analyser.base.times import NS_PER_MS, period_text, seconds_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text
from wirewitness.analyser.kafka.rules.producers import evidence_of, records_in
from wirewitness.analyser.kafka.rules.time_units import UNITS, unit_of

TIMES = "kafka_record_times"
KEYS = ("cluster_id",)
_UNSET, _AHEAD, _BEHIND = "unset", "ahead", "behind"
_QUARTER_MS = 15 * 60_000
_MOST = 100
_Client = tuple[object, object]
# Of rows without any of these nothing is said.
_COMPARED = ("ts_last", "first_timestamp", "last_timestamp", "later_ms", "later_low_ms", "later_high_ms")


def detect(
    frames: Frames,
    *,
    batches_least: int = 5,
    off_s: float = 300.0,
    times_others: float = 5.0,
    steady: float = 0.1,
) -> Iterator[Finding]:
    """One finding per client and what is wrong with its times."""
    rows = [row for row in rows_of(frames[TIMES]) if row["batches_count"] >= batches_least]
    least: dict[_Client, float] = {}
    for row in rows:
        least[_who(row)] = min(least.get(_who(row), inf), abs(row["later_ms"]))
    nearest = sorted(((ms, who) for who, ms in least.items()), key=itemgetter(0))[:2]
    found: dict[tuple[str | None, str | None, str], list[Row]] = {}
    for row in rows:
        if 2 * row["appended_count"] > row["batches_count"]:
            continue
        kind = _wrong(row, steady) or _off(row, nearest, off_s * 1000, times_others, steady)
        if kind is not None:
            found.setdefault((row["client_address"], row["client_id"], kind), []).append(row)
    right: dict[str, set[_Client]] = {}
    for row in rows:
        if abs(row["later_ms"]) < off_s * 1000:
            right.setdefault(str(row["topic"]), set()).add(_who(row))
    for (*_, kind), own in found.items():
        yield _finding(own, kind, right)


def _wrong(row: Row, steady: float) -> str | None:
    """Unset, or the unit in which the times are right."""
    if row["first_timestamp"] == row["last_timestamp"] == 0:
        return _UNSET
    return unit_of(row["last_timestamp"], row["ts_last"], steady)


def _off(
    row: Row, nearest: Sequence[tuple[float, _Client]], off_ms: float, times_others: float, steady: float
) -> str | None:
    """nearest: the two clients whose times are nearest to those of the packets."""
    later, spread = row["later_ms"], row["later_high_ms"] - row["later_low_ms"]
    passed = (row["ts_last"] - row["ts"]) / NS_PER_MS
    moved = row["last_timestamp"] - row["first_timestamp"]
    if abs(later) < off_ms or spread > steady * abs(later) or spread > passed * steady * 2 or passed <= 0:
        return None
    if abs(moved - passed) > 2 * steady * passed:
        return None
    others = next((ms for ms, who in nearest if who != _who(row)), None)
    if others is not None and abs(later) < times_others * others:
        return None
    return _BEHIND if later > 0 else _AHEAD


def _who(row: Row) -> _Client:
    return row["client_address"], row["client_id"]


def _finding(own: Sequence[Row], kind: str, right: Mapping[str, Set[_Client]]) -> Finding:
    """right: who writes right times to each topic."""
    first = min(own, key=lambda row: row["ts"])
    last_ns = max(row["ts_last"] for row in own)
    later = median(row["later_ms"] for row in own)
    topics = sorted({str(row["topic"]) for row in own})
    others = set[_Client]().union(*(right.get(topic, ()) for topic in topics)) - {_who(first)}
    zone = kind in {_AHEAD, _BEHIND} and abs(later - round(later / _QUARTER_MS) * _QUARTER_MS) < _QUARTER_MS / 60
    key = {"cluster": first["cluster_id"], "address": first["client_address"], "client_id": first["client_id"]}
    where = names_text([printable(topic, 120) for topic in topics], 3)
    batches = sum(row["batches_count"] for row in own)
    beside = (
        f" {count(len(others), 'other client')} with right times {'writes' if len(others) == 1 else 'write'} there."
    )
    return RULE.finding(
        severity="info" if kind == _BEHIND and not zone and not others else "warning",
        subject={**key, "kind": kind},
        title=f"Record times {_short(kind, later)}: {client_title(first)}, topic {first_of(topics)}",
        sentence=(
            f"{sentence_start(client_text(first))} writes records to {where} {_text(kind, later)}, in "
            f"{count(batches, 'batch', 'batches')} {period_text(first['ts'], last_ns)}."
            f"{' Whole quarters of an hour look like a wrong time zone.' if zone else ''}{beside if others else ''}"
        ),
        next_step=_STEPS.get(kind, _UNIT_STEP),
        proof=Proof(first["ts"], last_ns, evidence_of(own)),
        numbers={
            **key,
            "clients": [client_numbers(first)],
            "kind": kind,
            "where": topics[0],
            "topics": topics[:_MOST],
            "batches": batches,
            "records": records_in(own),
            "behind_packets_ms": round(later, 3),
            "first_timestamp": first["first_timestamp"],
            "others_with_right_times": len(others),
            "since": time_text(first["ts"]),
            "until": time_text(last_ns),
        },
    )


def _short(kind: str, later_ms: float) -> str:
    if kind == _UNSET:
        return "are 0"
    if kind in UNITS:
        return f"in {kind}, not ms"
    return f"{_span(later_ms)} {'behind' if later_ms > 0 else 'in the future'}"


def _text(kind: str, later_ms: float) -> str:
    if kind == _UNSET:
        return "with timestamp 0 (1970)"
    if kind in UNITS:
        return f"with timestamps in {kind} instead of milliseconds"
    side = "before" if later_ms > 0 else "after"
    return f"with timestamps {_span(later_ms)} {side} the packets that carry them, steadily"


def _span(later_ms: float) -> str:
    hours = abs(later_ms) / 3_600_000
    if hours >= 48:
        return f"{hours / 24:,.1f} days"
    return f"{hours:.1f} h" if hours >= 1 else seconds_text(round(abs(later_ms) * NS_PER_MS))


_UNIT_STEP = (
    "Give the times of records in milliseconds in this producer. What is written already goes by its wrong times: look "
    "whether retention deletes it (retention.ms), and at windows and joins by time."
)
_STEPS = {
    _UNSET: (
        "Leave the time of records to the producer, or set it. Retention takes these records for decades old "
        "(retention.ms); message.timestamp.type=LogAppendTime lets the broker set the time."
    ),
    _AHEAD: (
        "Compare the clock and time zone of this host with others (NTP), and look whether the application sets times. "
        "Records in the future are kept until they are old (retention.ms); message.timestamp.after.max.ms refuses them."
    ),
    _BEHIND: (
        "Compare the clock and time zone of this host with others (NTP), and look whether the application sets times. "
        "Retention deletes these records earlier (retention.ms), and stream processing drops them as late."
    ),
}

RULE = Rule(
    code="KAF340",
    question="differs",
    name="record-times",
    severity="warning",
    confidence="high",
    reads={
        TIMES: (
            "ts", "ts_last", "exchange_id", "topic", "client_id", "client_address", "batches_count", "records_count",
            "appended_count", "first_timestamp", "last_timestamp", "later_ms", "later_low_ms", "later_high_ms", "file",
            "request_packet",
        ),
    },
    partition_by=KEYS,
    detect=detect,
    rows={TIMES: " AND ".join(f"{name} IS NOT NULL" for name in ("topic", *_COMPARED))},
)  # fmt: skip
