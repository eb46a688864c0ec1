"""Where evidence is: the file and the packet of messages that a rule could name by their id only, and the line of those
that a request log tells.

In: findings, and a connection with the view of `messages`. Out: the same findings with both filled in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import duckdb

from wirewitness.analyser.engine.rules.findings import Evidence, Finding, some_evidence

# The table in which they are looked up.
MESSAGES = "messages"


def located(con: duckdb.DuckDBPyConnection, findings: Sequence[Finding]) -> Sequence[Finding]:
    """As they are where every message is known already, and where nobody decoded the table of messages."""
    asked = sorted({one.message_id for found in findings for one in found.evidence if _is_open(one)} - {None}, key=str)
    if not asked:
        return findings
    try:
        rows = con.execute(
            f"SELECT message_id, file, packet_last, line FROM {MESSAGES} WHERE message_id IN (SELECT unnest(?))",
            [asked],
        ).fetchall()
    except duckdb.CatalogException:
        return findings
    places = {message_id: place for message_id, *place in rows}
    return [
        replace(found, evidence=some_evidence(_placed(one, places) for one in found.evidence)) for found in findings
    ]


def _is_open(one: Evidence) -> bool:
    return one.file is None or one.packet is None


def _placed(one: Evidence, places: Mapping[str, Sequence[Any]]) -> Evidence:
    place = places.get(one.message_id or "")
    if place is None or not _is_open(one):
        return one
    file, packet, line = place
    if one.file is not None:  # where the rule says no packet, it means none
        return one._replace(line=line)
    return Evidence(file, packet if one.packet is None else one.packet, one.message_id, line)
