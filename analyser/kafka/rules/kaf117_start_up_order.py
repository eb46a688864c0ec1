"""KAF117 start-up-order: a consumer that started never came to read.

Finds
    Consumers that asked to join a group, or for its offsets, and stopped at one step of their way: ApiVersions,
    Metadata, FindCoordinator, JoinGroup, SyncGroup (KIP-848: ConsumerGroupHeartbeat), OffsetFetch, ListOffsets, Fetch.

Why it matters
    The process runs and looks healthy, and reads nothing: its partitions are left to others, or to nobody.

How it decides
    The client (address, client id) never fetched with success in the capture, and the last step that it tried was
    refused at least `failures` times and never answered with success, over at least `tries_s`.
    Errors that belong to starting are left out: 79 (the broker gives a member its id), 35 (ApiVersions), 14, 15, 16 for
    as long as they end; and answers whose error is not known.
    warning. `wirewitness groups --start-up` shows the whole way.

False alarms
    A client that is meant to wait for a topic or a right that comes later.

What it cannot tell
    Of requests alone nothing is said. Whether a consumer read before the capture began is not known; it is named for
    what is refused in the capture.

References
    Kafka protocol guide, errors. KIP-394 (79), KIP-511 (35).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, period_text, time_text
from wirewitness.analyser.base.words import sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_text, error_text, short_who, title_text
from wirewitness.dissectors.kafka.error_classes import error_class

KEYS = ("cluster_id", "client_address", "client_id")
STEPS = (
    "ApiVersions", "Metadata", "FindCoordinator", "JoinGroup", "SyncGroup", "ConsumerGroupHeartbeat", "OffsetFetch",
    "ListOffsets", "Fetch",
)  # fmt: skip
# Only consumers send these.
_CONSUMES = ("JoinGroup", "SyncGroup", "ConsumerGroupHeartbeat", "OffsetFetch")
# What follows at once and belongs to the step.
_EVERYDAY = (79, 35)


def detect(frames: Frames, *, failures: int = 3, tries_s: float = 5.0) -> Iterator[Finding]:
    """At most one finding for the client."""
    rows = [row for row in rows_of(frames["exchanges"]) if row["status"] == "ok" or _counts(row["error_code"])]
    consumes = any(row["operation"] in _CONSUMES for row in rows)
    if not consumes or any(row["operation"] == "Fetch" and row["status"] == "ok" for row in rows):
        return
    fine = {row["operation"] for row in rows if row["status"] == "ok"}
    refused = [row for row in rows if row["status"] == "error" and row["operation"] not in fine]
    step = max((row["operation"] for row in refused), key=STEPS.index, default=None)
    stuck = [row for row in refused if row["operation"] == step]
    if step is None or len(stuck) < failures or stuck[-1]["ts"] - stuck[0]["ts"] < tries_s * NS_PER_S:
        return
    yield _finding(step, stuck, rows, [one for one in STEPS if one in fine])


def _counts(code: int | None) -> bool:
    """A known error that does not belong to starting."""
    return code is not None and code not in _EVERYDAY


def _finding(step: str, stuck: Sequence[Row], rows: Sequence[Row], fine: Sequence[str]) -> Finding:
    last = stuck[-1]
    codes = Counter((row["error_code"], row["error_name"]) for row in stuck)
    (code, name), _ = codes.most_common(1)[0]
    key = {"cluster": last["cluster_id"], "client": last["client_id"], "address": last["client_address"]}
    way = f", after {', '.join(fine)} had succeeded" if fine else ""
    first_ns, last_ns = stuck[0]["ts"], last["ts"]
    return RULE.finding(
        severity="warning",
        provisional=True,
        subject={**key, "step": step},
        title=title_text(
            f"Consumer cannot start: {{}}, {step} refused {times(len(stuck))}, {{}}",
            short_who(last["client_address"], last["client_id"]), error_text(code, name),
        ),
        sentence=(
            f"{sentence_start(client_text(last))} never came to read: its {step} was refused {times(len(stuck))} with "
            f"{error_text(code, name)}. It is a consumer that started; this was {period_text(first_ns, last_ns)}{way}."
        ),
        next_step=error_class(code, step).next_step
        or f"Look up error {error_text(code, name)} for {step}, and into the log of that client.",
        proof=Proof(first_ns, last_ns, evidence_of(stuck, ("request_file", "request_packet", "exchange_id"))),
        numbers={
            "cluster": last["cluster_id"],
            "client_id": last["client_id"],
            "address": last["client_address"],
            "step": step,
            "went_well": list(fine),
            "error_code": code,
            "error_name": name,
            "requests_refused": len(stuck),
            "stood_still_ms": (max(row["ts"] for row in rows) - first_ns) // NS_PER_MS,
            "since": time_text(first_ns),
            "until": time_text(last_ns),
            "clients": [{"address": last["client_address"], "client_id": last["client_id"]}],
        },
    )  # fmt: skip


_LIST = ", ".join(f"'{one}'" for one in STEPS)
_CONSUMER = ", ".join(f"'{one}'" for one in _CONSUMES)
RULE = Rule(
    code="KAF117",
    question="repeated",
    name="start-up-order",
    severity="warning",
    confidence="high",
    reads={
        "exchanges": (
            "ts", "exchange_id", "operation", "status", "error_code", "error_name", "request_file", "request_packet",
        ),
    },
    partition_by=KEYS,
    detect=detect,
    signs={"exchanges": "count(*) FILTER (protocol = 'kafka' AND status = 'error') >= 3"},
    rows={"exchanges": f"protocol = 'kafka' AND operation IN ({_LIST}) AND status IN ('ok', 'error')"},
    suspects=f"""
        SELECT cluster_id, client_address, client_id FROM r_exchanges
        GROUP BY ALL
        HAVING count(*) FILTER (operation IN ({_CONSUMER}) AND status = 'error') >= 3
            AND count(*) FILTER (operation = 'Fetch' AND status = 'ok') = 0""",
)  # fmt: skip
