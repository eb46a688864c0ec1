"""One client, of any protocol: what it asks for, its connections and its groups. In: who; out: SELECTs and rows."""

from __future__ import annotations

from typing import Any, NamedTuple

from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.questions.source import Source, rows

# Who talks to whom. In: a source; out: one value per pair of client address and server endpoint.

# A SELECT for tables that are filtered and paged where they are.
PEERS = """
    select client_address, server_address, server_port, coalesce(protocol, 'not identified') as protocol,
           count(*) as connections, sum(packets)::bigint as packets,
           sum(bytes_to_server)::bigint as bytes_to_server, sum(bytes_to_client)::bigint as bytes_to_client,
           sum(gap_bytes)::bigint as gap_bytes, sum(retransmitted_segments)::bigint as retransmitted_segments,
           count(*) filter (closed_by like '%rst%' or reset_by is not null) as resets,
           min(ts_first) as ts_first, max(ts_last) as ts_last
    from flows group by all"""


class Who(NamedTuple):
    """A client: id, address. None where it has no id."""

    client_id: str | None
    address: str

    @property
    def condition(self) -> str:
        """An SQL condition for rows with `client_id` and `client_address`."""
        named = "client_id is null" if self.client_id is None else f"client_id = {literal(self.client_id)}"
        return f"{named} and client_address = {literal(self.address)}"

    def in_finding(self, finding: Finding) -> bool:
        """Whether the finding names it: under its id, or under its address alone where it tells no id."""
        return any(
            one.get("address") == self.address and one.get("client_id") in (None, self.client_id)
            for one in finding.everybody
        )


_OPERATIONS = """
    select protocol, operation, count(*) as exchanges, count(*) filter (status = 'error') as errors,
           mode(error_name) filter (status = 'error') as error, median(latency_ms) as median_ms,
           quantile_cont(latency_ms, 0.99) as p99_ms, min(ts) as ts_first, max(ts) as ts_last
    from exchanges where {who} group by protocol, operation"""
_CONNECTIONS = "select * from flows where flow_id in (select flow_id from exchanges where {who})"
_GROUPS = """
    select cluster_id, group_id, count(*) filter (what = 'commit') as commits,
           count(*) filter (what = 'commit' and failed) as refused, count(distinct member_id) as member_ids,
           max(generation) as generation
    from (select cluster_id, group_id, member_id, generation, 'commit' as what, error_code <> 0 as failed
          from kafka_offset_commits where {who}
          union all
          select cluster_id, group_id, member_id, generation, event, error_code <> 0 from kafka_group_events
          where {who})
    where group_id is not null group by cluster_id, group_id order by group_id"""


def who_of(text: str) -> Who | None:
    """The client of `id@address` or `@address`; None where the text names none."""
    client_id, at, address = text.rpartition("@")
    return Who(client_id or None, address) if at and address else None


def client_operations(who: Who) -> str:
    """A SELECT: what it asked for, a row for each operation."""
    return _OPERATIONS.format(who=who.condition)


def client_connections(who: Who) -> str:
    """A SELECT of the flows on which it sent something."""
    return _CONNECTIONS.format(who=who.condition)


def client_groups(source: Source, who: Who) -> list[dict[str, Any]]:
    """cluster_id, group_id, commits, refused, member_ids, generation of each group that it had to do with."""
    return rows(source, _GROUPS.format(who=who.condition))
