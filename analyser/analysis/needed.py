"""Which tables have to be decoded for those that somebody asks for. In: names. Out: names, with what they need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wirewitness.analyser.analysis.analysis import UnknownTable
from wirewitness.analyser.capture import Source
from wirewitness.analyser.engine.facts.naming_tables import NAMED_BY
from wirewitness.analyser.engine.facts.stages import STAGE_OF
from wirewitness.analyser.tables.tables import TABLES

# What a table's context columns, or the rules, are made from.
_CONTEXT_SOURCES = ("flows", *NAMED_BY)
_NEEDS: dict[str, tuple[str, ...]] = {
    **{table: (*stage.makes, *stage.reads) for table, stage in STAGE_OF.items()},
    "findings": tuple(name for name, table in TABLES.items() if name != "findings" and not table.on_request),
    "stands_out": ("findings",),  # and what findings are made of
}


def needed_tables(names: Iterable[str]) -> list[str]:
    """The tables asked for and those needed to make them, in registry order."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in TABLES:
            raise UnknownTable(f"no table {name}; there are {', '.join(TABLES)}")
        if name not in found:
            found.add(name)
            waiting += _CONTEXT_SOURCES if name not in ("captures", "flows") else ()
            waiting += _NEEDS.get(name, ())
    return [name for name in TABLES if name in found]


def tables_to_decode(wanted: list[str], sources: Sequence[Source]) -> list[str]:
    """The tables to decode: where captures and request logs are read together also those that tell what is in both."""
    logs = sum(source.is_log for source in sources)
    return wanted if logs in (0, len(sources)) else needed_tables([*wanted, "messages", "exchanges"])
