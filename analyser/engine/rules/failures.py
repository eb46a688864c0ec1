"""What a process that runs rules tells another: failures as data, since not every exception survives the way.

In: failures. Out: bytes, and failures again that people are told the same of.
"""

from __future__ import annotations

import json

from wirewitness.analyser.engine.rules.limits import PartitionTooLarge, TooManyCompared, TooManyFindings
from wirewitness.analyser.engine.rules.running import Failure

_LIMITS = {kind.__name__: kind for kind in (PartitionTooLarge, TooManyFindings, TooManyCompared)}


class RuleBroke(Exception):
    """A rule raised in another process; the text is what it raised, as `repr` shows it."""

    def __repr__(self) -> str:
        """What was raised there."""
        return str(self)


def failure_data(failure: Failure) -> bytes:
    """For `failure_of`."""
    text = repr(failure.error) if failure.is_own_fault else str(failure.error)
    return json.dumps({"key": failure.key, "text": text, "kind": type(failure.error).__name__}).encode()


def failure_of(code: str, data: bytes) -> Failure:
    """The failure of the rule with this code."""
    told = json.loads(data)
    kind = _LIMITS.get(told["kind"], RuleBroke)
    return Failure(code, tuple(told["key"]), kind(told["text"]))
