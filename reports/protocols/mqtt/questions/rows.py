"""MQTT connections and deliveries, for charts and tables. In: a source; out: rows, or SELECTs over registered tables.

Times `t` are Unix ms (floats).
"""

from __future__ import annotations

from typing import Any

from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.questions.source import Source, rows
from wirewitness.reports.base.questions.timelines import LATENCY_STEP, heat_cells

LANES = 40
# Of one client, its last ones.
BARS = 100

# How a connection ended, the worst first: what a lane's colour says.
ENDS = ("refused", "taken over", "dropped", "ended by the server", "ended by the client", "open at the end")
# As MQT102: the server closes a connection so soon around the CONNECT of the one that takes its client id over.
_TAKEN_WITHIN_NS = 1_000_000_000

# A lane goes to the end of the connection; where that is not in the capture, to where more of it would have been seen.
_LANES = f"""
    with own as (
        select *, coalesce(client_id, client_address) as client, epoch_ns(ts) as begin_ns,
               epoch_ns(coalesce(ts_closed, observed_until, ts_end, ts)) as end_ns,
               epoch_ns(coalesce(ts_closed, ts_end)) as closed_ns
        from mqtt_connections where {{matching}}),
    takers as (
        select old.flow_id, arg_min(new.client_address || ':' || new.client_port, new.begin_ns) as taken_by
        from own as old join own as new
            on old.client_id = new.client_id and old.flow_id <> new.flow_id and new.begin_ns > old.begin_ns
            and abs(new.begin_ns - old.closed_ns) <= {_TAKEN_WITHIN_NS}
        where old.disconnected_by is distinct from 'client'
            and (old.closed_by = 'server' or old.disconnected_by = 'server') and coalesce(old.error_code, 0) = 0
        group by old.flow_id),
    known as (
        select client, begin_ns / 1e6 as t, greatest(end_ns, begin_ns) / 1e6 as t_end, client_address, keep_alive_s,
               version, taken_by, flow_id,
               case when error_code <> 0 then 'refused'
                    when taken_by is not null then 'taken over'
                    when disconnected_by = 'client' then 'ended by the client'
                    when disconnected_by = 'server' then 'ended by the server'
                    when closed_by is not null then 'dropped' else 'open at the end' end as ending,
               coalesce('taken over by ' || taken_by, nullif(concat_ws(': ', case when error_code <> 0 then 'refused'
                   when disconnected_by is not null then 'ended by the ' || disconnected_by
                   when closed_by is not null then 'dropped by the ' || closed_by end,
                   coalesce(disconnect_reason_name, case when error_code <> 0 then error_name end)), ''),
                   'open at the end') as how,
               publishes_from_client as published, publishes_from_server as received
        from own left join takers using (flow_id)),
    shown as (
        select client, row_number() over (
                   order by count(*) filter (ending in ('refused', 'taken over', 'dropped')) desc, count(*) desc,
                       client) as place
        from known group by client order by place limit {{lanes}} offset {{first}})
    select *, count(*) over (partition by client) as connections
    from known join shown using (client)
    qualify row_number() over (partition by client order by t desc, flow_id) <= {BARS} order by place, t, flow_id"""
_LANE_COUNT = "select count(distinct coalesce(client_id, client_address)) as n from mqtt_connections where {matching}"

_DELIVERY_HEAT = f"""
    select epoch_ns(ts) // {{width}} * {{width}} / 1e6 as t,
           {LATENCY_STEP} as step, count(*) as exchanges
    from mqtt_deliveries where latency_ms is not null group by all order by all"""

WAY = "case direction when 'client_to_server' then 'to the server' when 'server_to_client' then 'to clients' end"
_ACKNOWLEDGED = f"""
    select message_id, ts, client_id, client_address, {WAY} as direction, topic, qos, packet_identifier,
           handshake, dup, packet, last_step_packet
    from mqtt_publishes where qos > 0 and {{where}}"""
_DELIVERED = """
    select message_id, ts, topic, client_id, client_address, subscriber_client_id, subscriber_address, topic_filter,
           status, waited_ms, latency_ms
    from mqtt_deliveries where {where}"""
BEFORE_CAPTURE = "(subscribed before the capture)"


def acknowledged(direction: str | None = None, qos: int | None = None, handshake: str | None = None) -> str:
    """A SELECT of messages with QoS 1 or 2: those of one kind of handshake, or all whose handshake is not complete."""
    if handshake is None:
        return _ACKNOWLEDGED.format(where="handshake is distinct from 'complete'")
    same = f"coalesce(handshake, 'unknown') = {literal(handshake)} and direction is not distinct from "
    return _ACKNOWLEDGED.format(where=f"{same}{literal(direction) if direction else 'null'} and qos = {int(qos or 0)}")


def delivered(topic_filter: str | None = None, share_name: str | None = None, within: str = "") -> str:
    """A SELECT of deliveries: all of one subscription, or of all those that did not arrive.

    within: SQL boolean over `mqtt_deliveries`; those of which it holds, arrived or not.
    """
    if topic_filter is None:
        return _DELIVERED.format(where=within or "status not in ('delivered', 'sent')")
    share = literal(share_name) if share_name else "null"
    same = f"coalesce(topic_filter, {literal(BEFORE_CAPTURE)}) = {literal(topic_filter)}"
    return _DELIVERED.format(where=f"{same} and share_name is not distinct from {share} and {within or 'true'}")


def connection_lanes(source: Source, lanes: int = LANES, first: int = 0, containing: str = "") -> list[dict[str, Any]]:
    """client, t, t_end, ending (one of ENDS), how (the same in words, with who took over), connections and facts.

    Of `lanes` clients from the place `first` on, those whose connections ended worst first; of each its
    last BARS connections. containing: text that its id or address has, in either case. connections: of that client.
    """
    return rows(source, _LANES.format(lanes=int(lanes), first=int(first), matching=_matching(containing)))


def lane_count(source: Source, containing: str = "") -> int:
    """How many clients have a lane."""
    return int(rows(source, _LANE_COUNT.format(matching=_matching(containing)))[0]["n"])


def _matching(containing: str) -> str:
    if not containing:
        return "true"
    text = literal(containing.lower())
    return f"(contains(lower(coalesce(client_id, '')), {text}) or contains(client_address, {text}))"


def delivery_latency(source: Source, width_ns: int) -> list[dict[str, Any]]:
    """t, t_end, low_ms, high_ms, exchanges: from publisher to subscriber, cells of a heat map."""
    return heat_cells(rows(source, _DELIVERY_HEAT.format(width=int(width_ns))), width_ns)
