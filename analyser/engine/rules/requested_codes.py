"""Which rules have any row to look at: asking for none costs each of the others a statement that must be planned.

In: the names of tables that have rows, and the protocols of flows. Out: rules; the others could find nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from wirewitness.analyser.engine.facts.stages import STAGE_OF
from wirewitness.analyser.engine.facts.topics import holding
from wirewitness.analyser.engine.rules.rule import AnyRow, Rule
from wirewitness.analyser.tables.tables import TABLES

if TYPE_CHECKING:
    import duckdb

# Rules about connections, whatever they carry. Some read tables of a protocol too, for what it says of a connection.
_OF_ANY_PROTOCOL = ("CAP", "TCP", "TLS", "NET")


def asked(rules: Iterable[Rule], filled: Collection[str], protocols: Collection[str | None]) -> list[Rule]:
    """Those worth asking. filled: tables with rows. protocols: what flows speak, None for what nobody could read.

    One of its tables must have rows. A rule of a protocol is asked where that is a table of its protocol, or a flow
    speaks it: connections and remarks of other protocols are nothing to it.
    """
    return [one for one in rules if not one.reads.keys().isdisjoint(filled) and _is_there(one, filled, protocols)]


def signs_of(rule: Rule) -> Mapping[str, str]:
    """Its signs: those declared, or the row by which it suspects, where no stage makes that table.

    Keys and times are left alone: rules have them in another form than tables.
    """
    one = rule.suspects
    if rule.signs or not isinstance(one, AnyRow) or one.table in STAGE_OF or one.condition == "true":
        return rule.signs
    words = {*re.findall(r"\w+", one.condition)}
    times = {column.name for column in TABLES[one.table].columns if column.kind == "time"}
    return {} if words & {*times, *rule.partition_by, "SELECT"} else {one.table: f"bool_or({one.condition})"}


def with_signs(con: duckdb.DuckDBPyConnection, rules: Sequence[Rule], there: Collection[str]) -> list[Rule]:
    """Those that have any of their signs in the views of the tables that are there, or declare none."""
    asked: dict[str, list[str]] = {}
    signs = {one.code: signs_of(one) for one in rules}
    for own in signs.values():
        for table in own.keys() & {*there}:
            asked.setdefault(table, []).append(own[table])
    seen: set[tuple[str, str]] = set()
    for table, conditions in asked.items():
        seen |= {(table, condition) for condition in holding(con, table, conditions)}
    return [one for one in rules if not signs[one.code] or not seen.isdisjoint(signs[one.code].items())]


def protocol_of(rule: Rule) -> str | None:
    """The protocol that a rule is about; None for one about connections of any."""
    found = {*_own_tables(rule).values()}
    return found.pop() if len(found) == 1 else None


def _is_there(rule: Rule, filled: Collection[str], protocols: Collection[str | None]) -> bool:
    """Is there anything of its protocol?"""
    own = _own_tables(rule)
    return not own or not own.keys().isdisjoint(filled) or not {*own.values()}.isdisjoint(protocols)


def _own_tables(rule: Rule) -> dict[str, str]:
    """The tables of a protocol that it reads, with that; none of a rule about connections of any."""
    if rule.code.startswith(_OF_ANY_PROTOCOL):
        return {}
    return {name: of for name in rule.reads if (of := TABLES[name].protocol)}
