"""Rules that look at partitions of one key: their rows are dealt and loaded once for all of them.

In: rules. Out: those of each key, a list for each.
"""

from __future__ import annotations

from collections.abc import Iterable

from wirewitness.analyser.engine.rules.partition_sql import key_sql
from wirewitness.analyser.engine.rules.rule import Rule


def families(rules: Iterable[Rule]) -> list[list[Rule]]:
    """Rules with the same key, of which every table has one and the same columns for all; in the order in which
    their first ones come."""
    found: list[tuple[dict[str, list[str]], list[Rule]]] = []
    for one in rules:
        own = {table: key_sql(one, table) for table in one.reads}
        for keys, family in found:
            if family[0].partition_by == one.partition_by and {**keys, **own} == {**own, **keys}:
                keys.update(own)
                family.append(one)
                break
        else:
            found.append((own, [one]))
    return [family for _, family in found]
