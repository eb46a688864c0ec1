"""MQTT over time and by topic, for charts and paged tables. In: a source; out: rows, or SELECTs over registered tables.

Times `t` are Unix ms (floats).
"""

from __future__ import annotations

from typing import Any

from analyser.registry.queries import literal
from reports.questions.source import Source, rows
from reports.questions.timelines import LATENCY_STEP, heat_cells

LANES = 40
_MOST_BARS = 3000

# How a connection ended, the worst first: what a lane's colour says.
ENDS = ("refused", "broken off", "ended by the server", "ended by the client", "open at the end")

_LANES = """
    with known as (
        select coalesce(client_id, client_address) as client, epoch_ns(ts) / 1e6 as t,
               epoch_ns(coalesce(ts_end, observed_until, ts)) / 1e6 as t_end, client_address, keep_alive_s, version,
               case when error_code <> 0 then 'refused'
                    when disconnected_by = 'client' then 'ended by the client'
                    when disconnected_by = 'server' then 'ended by the server'
                    when closed_by is not null then 'broken off' else 'open at the end' end as ending,
               publishes_from_client as published, publishes_from_server as received
        from mqtt_connections),
    shown as (
        select client from known group by client
        order by count(*) filter (ending in ('refused', 'broken off')) desc, count(*) desc, client limit {lanes})
    select * from known semi join shown using (client) order by client, t limit {bars}"""

_TOPICS = """
    with own as (
        select *, string_split(topic, '/') as levels from mqtt_publishes where topic is not null and {under})
    select levels[{level}] as segment, count(distinct topic) as topics,
           bool_or(len(levels) > {level}) as deeper,
           count(*) filter (direction = 'client_to_server') as published,
           count(*) filter (direction = 'server_to_client') as sent_on,
           sum(payload_bytes)::bigint as payload_bytes,
           count(distinct client_id) filter (direction = 'client_to_server') as publishers,
           count(distinct flow_id) filter (direction = 'server_to_client') as receivers,
           count(*) filter (retain) as retained,
           count(*) filter (direction = 'client_to_server') * 1e9 / {span} as per_second
    from own group by segment"""

_OVER_TIME = """
    select epoch_ns(ts) // {width} * {width} / 1e6 as t,
           case direction when 'client_to_server' then 'published' else 'sent on' end as kind, count(*) as messages
    from mqtt_publishes where {under} group by all order by all"""

_DELIVERY_HEAT = f"""
    select epoch_ns(ts) // {{width}} * {{width}} / 1e6 as t,
           {LATENCY_STEP} as step, count(*) as exchanges
    from mqtt_deliveries where latency_ms is not null group by all order by all"""

_WAY = "case direction when 'client_to_server' then 'to the server' when 'server_to_client' then 'to clients' end"
UNFINISHED = f"""
    select message_id, ts, client_id, client_address, {_WAY} as direction, topic, qos, packet_identifier,
           handshake, dup, packet, last_step_packet
    from mqtt_publishes where qos > 0 and handshake is distinct from 'complete'"""
MISSING = """
    select message_id, ts, topic, client_id, client_address, subscriber_client_id, subscriber_address, topic_filter,
           status, waited_ms
    from mqtt_deliveries where status not in ('delivered', 'sent')"""


def connection_lanes(source: Source) -> list[dict[str, Any]]:
    """client, t, t_end, ending (one of ENDS) and facts, for the clients whose connections ended worst."""
    return rows(source, _LANES.format(lanes=LANES, bars=_MOST_BARS))


def below(under: str) -> str:
    """How all topics below a topic begin; "/" stands for the first level of topics that begin with a slash."""
    return under if under in ("", "/") else f"{under}/"


def topic_levels(under: str, span_ns: int) -> str:
    """A SELECT: one row for each next level below the topic prefix `under` ("" for the top). span_ns: for the rate."""
    level = below(under).count("/") + 1
    return _TOPICS.format(under=_below(under), level=level, span=max(int(span_ns), 1))


def publishes(under: str) -> str:
    """A SELECT of the messages of a topic and of all below it."""
    return f"select * replace ({_WAY} as direction) from mqtt_publishes where {_below(under, itself=True)}"


def publishes_over_time(source: Source, width_ns: int, under: str = "") -> list[dict[str, Any]]:
    """t, kind (published, sent on), messages."""
    return rows(source, _OVER_TIME.format(width=int(width_ns), under=_below(under, itself=True)))


def delivery_latency(source: Source, width_ns: int) -> list[dict[str, Any]]:
    """t, t_end, low_ms, high_ms, exchanges: from publisher to subscriber, cells of a heat map."""
    return heat_cells(rows(source, _DELIVERY_HEAT.format(width=int(width_ns))), width_ns)


def _below(under: str, *, itself: bool = False) -> str:
    if not under:
        return "true"
    inside = f"starts_with(topic, {literal(below(under))})"
    return f"(topic = {literal(under)} or {inside})" if itself else inside
