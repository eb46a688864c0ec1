"""A message as one of the two sides sees it: what it is found by, and the values that can be compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

Endpoint = tuple[str, int]
# Values that stand in the head of a message, which tshark reads also where it gives up further on.
HEAD = frozenset({"operation", "version", "number", "length_bytes", "client_id", "request"})


class Key(NamedTuple):
    """What finds a message on the other side: its stream, its size and what numbers it in its protocol."""

    protocol: str
    sender: Endpoint
    receiver: Endpoint
    length_bytes: int | None
    number: Any


class Flow(NamedTuple):
    """What of a message's flow can explain a difference. disorder: segments came late or again."""

    disorder: bool
    carrier: str | None


@dataclass(frozen=True, slots=True)
class Ours:
    """A message in our tables. values: name -> value, only what is known; cut: a gap or the capture's end cuts it."""

    packet: int
    key: Key
    operation: str | None
    role: str | None
    version: str | None
    values: dict[str, Any]
    message_id: str
    flow_id: str
    flow: Flow
    cut: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Theirs:
    """A message as tshark shows it. stream: its number for the connection. remarks: its expert infos on this message.

    malformed: it failed inside. too_new: it says that it does not know this version. gave_up: by these or another
    remark it says that it could not read the whole.
    """

    packet: int
    key: Key
    operation: str | None
    role: str | None
    version: str | None
    values: dict[str, Any]
    stream: int = 0
    malformed: bool = False
    too_new: bool = False
    gave_up: bool = False
    remarks: tuple[str, ...] = field(default=())


def partition_order(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sorts rows of topic, partition and perhaps offset; a topic may be unknown."""
    return (row[0] or "", *row[1:])
