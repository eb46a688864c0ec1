"""KAF322 refused-for-good: a broker refuses a client something that no later try will give it.

Finds
    Clients that are refused a topic, a group, a transactional id or a setting with an error that only a change heals:
    no right (29, 30, 31, 53), a name that cannot be (17, 24), a timeout outside of what the broker allows (26, 50), a
    full group (81), no such assignor (112), an invalid pattern (128) and their like. One finding for each client and
    error.

Why it matters
    Such a client waits for ever, or its application has ended with an exception that nobody reads; dashboards of the
    broker are green. One refusal is enough: the next one will say the same.

How it decides
    By the fact `kafka_refusals`: the error is one that no later try heals, and until the end of the capture this client
    had no success with the same kind of request for the same resource after it.
    Left to others: refused batches (KAF205), commits (KAF118), logins (KAF312), versions (KAF305), assignors that do
    not match (KAF112), admin requests (KAF309).

False alarms
    A program that tries what it may do. A right that is given after the capture ended.

What it cannot tell
    As whom the client logged in, where the login is not in the capture. Of requests alone nothing is said.

References
    Kafka protocol errors; authorization in Kafka's documentation (operations and resources of each API).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import period_text
from wirewitness.analyser.base.titles import client_title, short
from wirewitness.analyser.base.words import names_text, printable, sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.facts.refusals import REFUSED_FOR_GOOD
from wirewitness.analyser.kafka.rules.connections import client_keys, client_subject
from wirewitness.analyser.kafka.rules.names import MAX_NAME, client_numbers, client_text
from wirewitness.dissectors.kafka.error_classes import error_class
from wirewitness.dissectors.kafka.error_codes import error_name

REFUSALS = "kafka_refusals"
_MOST_NAMES = 20
# Of logins, versions and assignors other rules say more.
_OTHERS = (23, 33, 34, 35, 58)


def detect(frames: Frames) -> Iterator[Finding]:
    """One finding per client id and error."""
    found: dict[tuple[str | None, int], list[Row]] = {}
    for row in rows_of(frames[REFUSALS]):
        found.setdefault((row["client_id"], row["error_code"]), []).append(row)
    for own in found.values():
        yield _finding(own)


def _finding(own: Sequence[Row]) -> Finding:
    first, last_ns = own[0], max(row["ts_last"] or row["ts"] for row in own)
    code = first["error_code"]
    known = error_class(code, first["operation"])
    name = error_name(code)
    requests = sum(row["refusals"] for row in own)
    kind, resources = _resources(own)
    what = f" {names_text([printable(one, MAX_NAME) for one in resources], 2)}" if resources else ""
    of = f" for the {kind}{what}" if kind and what else ""
    apis = list(dict.fromkeys(row["operation"] or "?" for row in own))
    because = f": {known.meaning}" if known.meaning else ""
    shown = f" for {short(resources[0])}" if resources else ""
    return RULE.finding(
        provisional=True,
        title=f"{apis[0]}{shown} refused with {code} {short(name)}: {client_title(first)}",
        subject={**client_subject(first), "error": code, "resource": resources[0] if resources else None},
        sentence=(
            f"{sentence_start(client_text(first))} is refused {names_text(apis, 2)}{of} by {server_text(first)} with "
            f"{code} {name}{because}. {sentence_start(times(requests))}, {period_text(first['ts'], last_ns)}, and no "
            f"success until the end of the capture."
        ),
        next_step=known.next_step or f"Look up error {code} ({name}) for {apis[0]}, and into the client's log.",
        proof=Proof(
            first["ts"],
            last_ns,
            (Evidence(None, None, one) for row in own for one in {row["exchange_id"], row["last_exchange_id"]} if one),
        ),
        numbers={
            **client_keys(first),
            "operation": apis[0],
            "operations": apis,
            "error_code": code,
            "error_name": name,
            "who_acts": known.actor,
            "resource_type": kind,
            "resources": resources[:_MOST_NAMES],
            "requests": requests,
            "server": server_text(first),
            "where": server_text(first),
            "clients": [client_numbers(first, requests=requests)],
        },
    )


def _resources(own: Sequence[Row]) -> tuple[str | None, list[str]]:
    """The kind of what was refused and all names of that kind, in the order in which they were asked for."""
    kind = next((row["resource_type"] for row in own if row["resource"]), None)
    return kind, list(dict.fromkeys(row["resource"] for row in own if row["resource"] and row["resource_type"] == kind))


RULE = Rule(
    code="KAF322",
    question="refused",
    name="refused-for-good",
    severity="warning",
    confidence="high",
    reads={
        REFUSALS: (
            "ts", "ts_last", "client_id", "client_address", "server_address", "server_port", "operation",
            "resource_type", "resource", "error_code", "refusals", "exchange_id", "last_exchange_id",
        ),
    },
    partition_by=("cluster_id", "client_address"),
    detect=detect,
    rows={REFUSALS: f"ts_succeeded IS NULL AND error_code NOT IN {_OTHERS}"},
    suspects=AnyRow(REFUSALS),
    signs={"exchanges": f"bool_or({REFUSED_FOR_GOOD})"},
)  # fmt: skip
