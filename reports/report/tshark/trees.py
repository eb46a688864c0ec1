"""tshark's packets, and what readers of any protocol take from the trees of their fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from wirewitness.dissectors.core.secrets import is_suspicious, masked
from wirewitness.reports.report.tshark.message import Key, Theirs

Pairs = list[tuple[str, Any]]
MALFORMED = "_ws.malformed"
_NULL = "[ Null ]"
# How remarks begin that say that a message could not be read; others are about what it means.
_GAVE_UP = re.compile(
    r"Unsupported compression|Unknown (section type|Data)|Dissected message does not end|Request missing|Invalid "
    r"|Bogus |Error uncompressing|BSON document"
)


class Packet(NamedTuple):
    """One packet with messages of a protocol of ours. layers: name and tree of each, in the order of dissection.

    A tree is a list of (name, value or tree).
    """

    number: int
    ts_ns: int
    stream: int
    sender: tuple[str, int]
    receiver: tuple[str, int]
    layers: list[tuple[str, Pairs]]


def made(
    packet: Packet,
    protocol: str,
    length: int,
    number: Any,
    kinds: tuple[str | None, str | None, str | None],
    values: dict[str, Any],
    tree: Pairs,
    *,
    too_new: bool = False,
) -> Theirs:
    """The message. number: what it is found by; kinds: operation, role, version. too_new: it says so itself."""
    key, remarks = Key(protocol, packet.sender, packet.receiver, length, number), remarks_of(tree)
    malformed = any(name == MALFORMED for name, _ in tree) or any(mark.startswith("Malformed") for mark in remarks)
    gave_up = malformed or too_new or any(_GAVE_UP.match(remark) for remark in remarks)
    values = {name: _without_secrets(value) for name, value in values.items()}
    remarks = tuple(masked(remark) for remark in remarks)
    return Theirs(packet.number, key, *kinds, values, packet.stream, malformed, too_new, gave_up, remarks)


def _without_secrets(value: Any) -> Any:
    """Names masked as in our tables, which they are compared with."""
    if isinstance(value, str):
        return masked(value, is_name=True) if is_suspicious(value, is_name=True) else value
    if isinstance(value, list | tuple):
        return type(value)(map(_without_secrets, value))
    return value


def leaves(tree: Pairs) -> Iterator[tuple[str, str]]:
    """All values of a tree in the order of the bytes."""
    waiting = [iter(tree)]
    while waiting:
        for name, value in waiting[-1]:
            if isinstance(value, list):
                waiting.append(iter(value))
                break
            yield name, value
        else:
            waiting.pop()


def remarks_of(tree: Pairs) -> tuple[str, ...]:
    """The expert infos in a tree."""
    return tuple(value for name, value in leaves(tree) if name == "_ws.expert.message")


def inside(tree: Pairs, *path: str) -> Pairs:
    """The first tree of that path in which the path can be gone to its end; empty without one."""
    if not path:
        return tree
    for name, value in tree:
        if name == path[0] and isinstance(value, list):
            found = inside(value, *path[1:])
            if found:
                return found
    return []


def text_of(value: str | None) -> str | None:
    """Text; tshark shows a null one as a word."""
    return None if value in {None, _NULL} else value
