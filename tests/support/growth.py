"""How work grows with rows, counted so that a busy machine changes nothing.

In: what is to be done. Out: lines of Python that were executed, and rows that DuckDB's operators passed on or compared.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import duckdb

# A condition that no hash can answer: a join tries it for each pair of rows that the other conditions leave.
_UNEQUAL = re.compile(r"<|>|!=|BETWEEN", re.IGNORECASE)
_EQUAL = re.compile(r"(\w+) (?:=|IS NOT DISTINCT FROM) (\w+)")
_TRYING = ("HASH_JOIN", "NESTED_LOOP_JOIN", "BLOCKWISE_NL_JOIN")

# An ASOF join of few rows is done as a loop over the others: that many are no growth, and would be counted as pairs.
_SETTINGS = """
    SET enable_profiling = 'no_output'; SET python_scan_all_frames = true; SET asof_loop_join_threshold = 0"""


class Work:
    """What was counted so far: lines by function, rows by operator.

    alone: columns of which a value stands in one row on one side of each join: where a join by more than equality
    asks for all of some, nothing is tried.
    """

    def __init__(self, alone: Sequence[frozenset[str]] = ()) -> None:
        self.lines: Counter[CodeType] = Counter()
        self.rows: Counter[str] = Counter()
        self._alone = alone

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Lines of Python in this block count, each turn of a loop in one line too."""
        lines = self.lines

        def line(frame: FrameType, event: str, _: object) -> Any:
            if event == "line":
                lines[frame.f_code] += 1
            return line

        before = sys.gettrace()
        sys.settrace(line)
        try:
            yield
        finally:
            sys.settrace(before)

    def add(self, operator: Mapping[str, Any]) -> None:
        """Rows that an operator and those below it passed on; of a join by more than equality also the pairs that it
        may have to try, where all that it reads is of one key."""
        below = operator.get("children", ())
        told = operator.get("extra_info", {}).get("Conditions", "")
        conditions = told if isinstance(told, str) else ", ".join(told)
        name = f"{operator['type']} {conditions}".strip()
        self.rows[name] += operator.get("intermediate_rows", 0) + operator.get("rows_scanned", 0)
        if operator["type"] in _TRYING and _UNEQUAL.search(conditions) and not self._is_alone(conditions):
            left, right = (one.get("intermediate_rows", 0) for one in below)
            self.rows[name] += left * right
        for one in below:
            self.add(one)

    def _is_alone(self, conditions: str) -> bool:
        equal = {name for pair in _EQUAL.findall(conditions) for name in pair}
        return any(columns <= equal for columns in self._alone)


class Watched:
    """A connection whose statements count: in all else it is the connection.

    A relation of `sql` is executed when its rows are taken, so what it did is known with the next statement, or `end`.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, work: Work) -> None:
        self._con, self._work, self._waits = con, work, False
        con.execute(_SETTINGS)

    def __getattr__(self, name: str) -> Any:
        """Whatever the connection has."""
        return getattr(self._con, name)

    def execute(self, query: Any, *more: Any, **named: Any) -> Any:
        """As the connection does; statements one after the other."""
        done: Any = None
        for statement in self._con.extract_statements(query) if isinstance(query, str) else [query]:
            self.end()
            done = self._con.execute(statement, *more, **named)
            self._waits = True
        return done if done is None else self

    def sql(self, query: str, **named: Any) -> Any:
        """As the connection does."""
        self.end()
        found = self._con.sql(query, **named)
        self._waits = True
        return found

    def cursor(self) -> Watched:
        """Another connection, that counts too."""
        return Watched(self._con.cursor(), self._work)

    def end(self) -> None:
        """Count what the last statement did."""
        if self._waits:
            self._waits = False
            for operator in json.loads(self._con.get_profiling_information("json") or "{}").get("operator", ()):
                self._work.add(operator)


def growth(counts: Sequence[int], size: int) -> float:
    """By how much the last doubling grew more than the one before: 2 where work is so much for each row, whatever it
    costs besides, 4 where it is row against row. counts: of sizes that double, three or more; size: the first of them.

    What is less than a line or row for each row does not count.
    """
    before, now = counts[-2] - counts[-3], counts[-1] - counts[-2]
    rows = size << (len(counts) - 3)
    return now / max(before, rows)
