"""How Kafka's clients, groups and partitions are named, in sentences and in a finding's numbers.

In: ids from the wire, each None where it is not known, or rows of a rule's frames that hold them.
Out: words, and parts of a finding's numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from wirewitness.analyser.base.words import names_text, printable
from wirewitness.analyser.engine.rules.frame_rows import Row

# Longer names are cut in sentences; a member id is a client id and a UUID.
MAX_NAME = 160
# So many partitions or clients are listed in the numbers of one finding.
MAX_LISTED = 100


def who_text(address: str | None, client_id: str | None, member_id: str | None = None) -> str:
    """`client shop-1 at 10.0.0.3`, and `(member shop-1-c27f)` where it is known."""
    client = printable(client_id, MAX_NAME) if client_id else "(no client id)"
    member = f" (member {printable(member_id, MAX_NAME)})" if member_id else ""
    return f"client {client} at {address or '(unknown address)'}{member}"


def client_text(row: Mapping[str, Any]) -> str:
    """The client of a row, without its member id."""
    return who_text(row["client_address"], row["client_id"])


def who_numbers(address: str | None, client_id: str | None, member_id: str | None = None) -> Row:
    """An element of `clients` in a finding's numbers."""
    return {"address": address, "client_id": client_id, "member_id": member_id}


def client_numbers(row: Mapping[str, Any], **more: Any) -> Row:
    """The same for the client of a row that knows no members."""
    return {"address": row["client_address"], "client_id": row["client_id"], **more}


def group_text(group_id: str | None) -> str:
    """`Group billing`, to begin a sentence."""
    return f"Group {printable(group_id, MAX_NAME) if group_id else '?'}"


def error_text(code: int | None, name: str | None) -> str:
    """`45 OUT_OF_ORDER_SEQUENCE_NUMBER`: as much of it as is known."""
    return " ".join(str(part) for part in (code, name) if part is not None) or "?"


def partition_text(topic: str | None, partition: int) -> str:
    """`orders-3`: topic and partition as Kafka's own tools write them."""
    return f"{printable(topic, MAX_NAME) if topic else '(unknown topic)'}-{partition}"


def place(row: Mapping[str, Any]) -> str:
    """The partition of a row."""
    return partition_text(row["topic"], row["partition"])


def places_text(rows: Iterable[Mapping[str, Any]], most: int = 5) -> str:
    """Their partitions, each once; what is too much is counted."""
    return names_text(sorted({place(row) for row in rows}), most)


def partitions_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """`partitions` of a finding's numbers."""
    return partition_names((row["topic"], row["partition"]) for row in rows)


def partition_names(places: Iterable[tuple[str | None, int]]) -> list[str]:
    """The same of topics and partitions, each once; one whose topic is not known has no name to be found by."""
    return sorted({f"{topic}-{partition}" for topic, partition in places if topic is not None})[:MAX_LISTED]
