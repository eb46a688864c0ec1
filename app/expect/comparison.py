"""What a number must be: `<= 700`. In: text. Out: a comparison, for Python and for SQL."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import NamedTuple

from wirewitness.analyser.base.bounded import excerpt
from wirewitness.app.expect.errors import RulesError

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_WRITTEN = re.compile(r"\s*(<=|>=|==|!=|<|>|=)\s*(-?\d{1,15}(?:\.\d{1,9})?)\s*")


class Comparison(NamedTuple):
    """An operator of Python and SQL alike, and a number."""

    operator: str
    number: float

    def holds(self, value: float) -> bool:
        """Whether a value is as it must be."""
        return _OPERATORS[self.operator](value, self.number)

    @property
    def sql(self) -> str:
        """To stand behind a value."""
        return f"{self.operator} {self.number_text}"

    @property
    def number_text(self) -> str:
        """The number as it was written, nearly."""
        return f"{self.number:.0f}" if self.number.is_integer() else f"{self.number}"

    @property
    def wants_less(self) -> bool:
        """Whether large values break it."""
        return self.operator.startswith("<")


def comparison(value: object, where: str) -> Comparison:
    """The comparison of a text, or of a number that a value must be equal to. RulesError for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return Comparison("==", float(value))
    found = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise RulesError(f'{where} must be a comparison such as "<= 700" or "== 0", not {excerpt(repr(value))}')
    return Comparison("==" if found[1] == "=" else found[1], float(found[2]))
