"""Which rows of a table are shown, findings among them. In: `ReadOptions`. Out: SQL conditions."""

from __future__ import annotations

from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.tables.queries import literal
from wirewitness.analyser.tables.selection import conditions

_OF_FINDINGS = ("findings", "findings_history")


def shown_rows(table: str, options: ReadOptions) -> list[str]:
    """What rows have to fulfil, empty for all. Findings have no protocol of their own: it is that of their rule, and
    rules about connections of any protocol are always shown."""
    found = conditions(table, options)
    if options.protocols and table in _OF_FINDINGS and (codes := _codes_of_others(options.protocols)):
        found.append(f"code NOT IN ({', '.join(map(literal, codes))})")
    return found


def _codes_of_others(protocols: tuple[str, ...]) -> list[str]:
    """The rules that are about other protocols."""
    from wirewitness.analyser.analysis.all_rules import RULES
    from wirewitness.analyser.engine.rules.requested_codes import protocol_of

    return [code for code, one in RULES.items() if protocol_of(one) not in {None, *protocols}]
