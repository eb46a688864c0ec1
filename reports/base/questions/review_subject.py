"""What a finding is about, so that it is the same in the next capture of the same trouble, and how much of it there is.

In: findings. Out: a subject without what changes from run to run (connections, packets, offsets, ids that a server
gives anew), the partitions it was seen on, and one number that counts how often it happened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from wirewitness.reports.base.questions.causes import Finding

Subject = Mapping[str, str]

# Other in the next capture, though the trouble is the same.
_OF_THE_RUN = frozenset(
    {
        *("flow", "exchange", "change", "at", "since", "offset", "producer_id", "producer_epoch", "lsid", "txn_number"),
        *("subscriber", "payload", "file"),
    }
)
# Part of how large it is, not of what it is.
_EXTENT = frozenset({"partition"})
# Who or what it is about, by a name that stays when a program starts again somewhere else.
_NAMES = ("client", "client_id", "application", "group", "user", "transactional_id", "instance", "name", "topic")
_ADDRESSES = ("address", "client_address", "other_address")
# Client ids that libraries give to whoever sets none: they tell nobody from another.
_GIVEN_BY_LIBRARIES = re.compile(
    r"(rdkafka|sarama|kgo|console-(consumer|producer)|perf-(consumer|producer)-client|(aio)?kafka-python[-.\w]*|kafkajs"
    r"|aiokafka[-.\w]*|confluent-kafka[-.\w]*|(consumer|producer|adminclient)-\d+)"
)
_PAIR = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)')
# Names of numbers that count how often it happened, or how long it went on; the first that a finding has says it.
# Those of single rules stand before those that many share, the standard costs last.
_COUNTS = (
    *("steps_back", "returns", "hand_overs", "foreign_commits", "commits_of_it", "refused_requests", "fenced"),
    *("rejected_requests", "ends", "deliveries", "deaths", "restarts", "turns", "refused_batches"),
    *("repeated_batches", "throttled_answers", "flaps", "changes", "attempts", "refusals", "answers"),
    *("rebalances_caused", "rebalances", "times_told", "messages_skipped", "messages_again"),
    *("messages_uncommitted", "messages_waiting", "records_affected", "slow", "lookups", "cursors", "replies"),
    *("reads", "silences", "writes", "take_overs", "stuck_messages", "missing", "sent_again", "fired", "retained"),
    *("repeats", "published", "retransmitted_segments", "waiting_requests", "refused", "whole_handshakes"),
    *("gap_bytes", "segments", "copies", "dropped_packets", "encrypted_flows", "count", "times", "unanswered"),
    *("late", "commits", "batches", "commands", "connections", "sessions", "requests", "messages", "silence_ms"),
    *("full_ms", "open_ms", "requests_refused", "records_lost", "records_again", "records_behind", "lag"),
    *("left_behind", "breaches", "stood_still_ms", "wasted_ms", "bytes", "flows"),
)
FINDINGS = "findings"


def subject_of(finding: Finding) -> dict[str, str]:
    """Pairs of its subject that stay. A client is told by its address only where no name tells it."""
    pairs = dict(subject_pairs(finding.subject))
    lost = pairs.keys() & _OF_THE_RUN
    kept = {key: value for key, value in pairs.items() if key not in _OF_THE_RUN | _EXTENT and value != "?"}
    if kept.get("cluster", "").startswith("component:"):  # made of what this capture shows of a cluster without a name
        del kept["cluster"]
    if lost:
        kept |= {key: value for key, value in _from_numbers(finding, kept) if value not in kept.values()}
    if any(_tells(kept.get(name)) for name in _NAMES):
        for name in _ADDRESSES:
            kept.pop(name, None)
    return kept


def subject_pairs(text: str) -> Iterator[tuple[str, str]]:
    """Names and values of the column `subject`."""
    for name, value in _PAIR.findall(text):
        yield name, _unquoted(value)


def subject_words(subject: Subject) -> str:
    """The same for people: `group payments-ledger, topic payments`."""
    shown = (f"{name.replace('_', ' ')} {value}" for name, value in subject.items() if name != "cluster")
    return ", ".join(shown) or "the capture"


def places_of(found: Iterable[Finding]) -> tuple[str, ...]:
    """Partitions that the findings are about, as `topic-number`, in order."""
    return tuple(f"{topic}-{number}" for topic, number in sorted({p for one in found for p in one.partitions()}))


def measured(found: Iterable[Finding]) -> tuple[str, int | float]:
    """Name and sum of the number that says how often it happened; of findings without one how many there are."""
    findings = list(found)
    for name in _COUNTS:
        size = sum_of(findings, name)
        if size:
            return name, size
    return FINDINGS, len(findings)


def sum_of(found: Iterable[Finding], name: str) -> int | float | None:
    """The sum of a number over the findings that have it; None where none has it."""
    findings = list(found)
    if name == FINDINGS:
        return len(findings)
    values = [f.numbers[name] for f in findings if _is_number(f.numbers.get(name))]
    return round(sum(values), 3) if values else None


def _from_numbers(finding: Finding, kept: Subject) -> Iterator[tuple[str, str]]:
    """Server or place, and client, of a finding whose subject names a connection."""
    numbers = finding.numbers
    where = numbers.get("where") or numbers.get("server")
    if where is not None:
        yield "where", str(where)
    if any(_tells(kept.get(name)) for name in _NAMES):
        return
    for client in finding.everybody[:1]:
        if client.get("client_id"):
            yield "client_id", str(client["client_id"])
        if client.get("address"):
            yield "address", str(client["address"])


def _tells(name: str | None) -> bool:
    return bool(name) and _GIVEN_BY_LIBRARIES.fullmatch(str(name)) is None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value
    try:
        return str(json.loads(value))
    except ValueError:
        return value
