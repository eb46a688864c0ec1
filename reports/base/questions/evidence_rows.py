"""What lies behind a finding. In: a finding and a source; out: a SELECT over its messages, and its connections."""

from __future__ import annotations

from collections.abc import Sequence

from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.questions.source import Source, all_rows
from wirewitness.reports.base.questions.wanted_exchanges import EXCHANGES

_MESSAGES_MOST = 2000


def message_ids(finding: Finding) -> list[str]:
    """Ids of the evidence messages in their order, at most 2000."""
    ids = dict.fromkeys(str(one["message_id"]) for one in finding.evidence if one.get("message_id"))
    return list(ids)[:_MESSAGES_MOST]


def evidence_exchanges(finding: Finding) -> str:
    """A SELECT of the exchanges whose request or response is evidence."""
    listed = _listed(message_ids(finding))
    return f"{EXCHANGES} where request_message_id in ({listed}) or response_message_id in ({listed})"


def evidence_messages(finding: Finding) -> str:
    """A SELECT of the messages that are evidence; those of the findings' packets where no message is named."""
    ids = message_ids(finding)
    if ids:
        return f"select * from messages where message_id in ({_listed(ids)})"
    packets = sorted({one["packet"] for one in finding.evidence if isinstance(one.get("packet"), int)})
    numbers = ", ".join(str(packet) for packet in packets[:_MESSAGES_MOST]) or "-1"
    files = _listed(sorted({str(one.get("file")) for one in finding.evidence}))
    return f"select * from messages where packet_last in ({numbers}) and file in ({files})"


def finding_flows(source: Source, finding: Finding) -> list[str]:
    """Ids of the connections that the evidence and the named clients ride on."""
    named = {str(flow) for who in finding.who for flow in (who.get("flows") or [who.get("flow_id")]) if flow}
    found = all_rows(source, f"select distinct flow_id from ({evidence_messages(finding)}) as t")
    return sorted(named | {row["flow_id"] for row in found if row["flow_id"]})


def _listed(values: Sequence[str]) -> str:
    return ", ".join(literal(value) for value in values) or "''"
