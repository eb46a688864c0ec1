"""One comparison, and a reason why it may come out otherwise although we are right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from wirewitness.reports.report.tshark.message import Ours, Theirs

# What tshark remarks on a response whose request it does not have.
MISSING = "Request missing"


class Case(NamedTuple):
    """One comparison. differing: names of values that differ.

    forgotten: tshark gave up on the request of this response. gap, midstream, encrypted: of the flow; shared: several
    protocols are spoken on its port. started: both sides have had the same message of this stream before. answered: the
    request that tshark pairs this response with has had its response already. damaged: tshark stopped at a damage of
    the file before the packet of this message. continued: the connection began before the file.
    """

    ours: Ours | None
    theirs: Theirs | None
    differing: frozenset[str]
    forgotten: bool = False
    gap: bool = False
    midstream: bool = False
    encrypted: bool = False
    shared: bool = False
    started: bool = True
    answered: bool = False
    damaged: bool = False
    continued: bool = False


@dataclass(frozen=True, slots=True)
class Limit:
    """A reason. whose: "tshark" for what it cannot do, "both" for rules on which nobody is wrong, or "capture"."""

    code: str
    protocol: str
    whose: str
    text: str
    seen: str
    source: str
    applies: Callable[[Case], bool]


def protocol_of(case: Case) -> str:
    """The protocol of the message."""
    message = case.ours or case.theirs
    return message.key.protocol if message else ""


def remarked(case: Case, text: str) -> bool:
    """tshark remarks this on the message."""
    return case.theirs is not None and text in case.theirs.remarks


def only_ours(case: Case) -> bool:
    """tshark does not show the message."""
    return case.ours is not None and case.theirs is None


def apart(case: Case) -> bool:
    """The sides do not have the same bytes for a message."""
    return case.ours is None or case.theirs is None or "length_bytes" in case.differing
