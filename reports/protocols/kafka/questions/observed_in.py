"""Which exchange told something that a table says without naming it. In: a source and what was told; out: its id."""

from __future__ import annotations

from wirewitness.reports.base.questions.source import Source, rows
from wirewitness.reports.protocols.kafka.questions.commits import of_group

# The answer tells it, as a rule; of a request that has none, the request.
_GROUP = """
    select exchange_id from kafka_group_events where {where}
    order by abs(epoch_ns(coalesce(ts_response, ts)) - {at_ns}), epoch_ns(ts), exchange_id limit 1"""


def group_told(source: Source, cluster_id: str | None, group_id: str | None, at_ns: int) -> str | None:
    """The exchange about the group that is nearest to this time, Unix ns."""
    found = rows(source, _GROUP.format(where=of_group(cluster_id, group_id), at_ns=int(at_ns)))
    return str(found[0]["exchange_id"]) if found else None
