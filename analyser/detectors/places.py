"""Where evidence is: the file and the packet of messages that a rule could name by their id only.

In: findings, and a connection with the view of `messages`. Out: the same findings with both filled in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import duckdb

from analyser.detectors.findings import Evidence, Finding, some_evidence

# The table in which they are looked up.
MESSAGES = "messages"


def located(con: duckdb.DuckDBPyConnection, findings: Sequence[Finding]) -> Sequence[Finding]:
    """As they are where every message is known already, and where nobody decoded the table of messages."""
    asked = sorted(
        {one.message_id for found in findings for one in found.evidence if one.file is None} - {None}, key=str
    )
    if not asked:
        return findings
    try:
        rows = con.execute(
            f"SELECT message_id, file, packet_last FROM {MESSAGES} WHERE message_id IN (SELECT unnest(?))", [asked]
        ).fetchall()
    except duckdb.CatalogException:
        return findings
    places = {message_id: (file, packet) for message_id, file, packet in rows}
    return [
        replace(found, evidence=some_evidence(_placed(one, places) for one in found.evidence)) for found in findings
    ]


def _placed(one: Evidence, places: Mapping[str, tuple[str, int | None]]) -> Evidence:
    place = places.get(one.message_id or "")
    if one.file is not None or place is None:
        return one
    file, packet = place
    return Evidence(file, packet if one.packet is None else one.packet, one.message_id)
