"""What stands out in MQTT: identities, subscriptions, topics, what goes round, what does not arrive.

In: nothing. Out: POPULATIONS, over MQTT's finished tables.
"""

from __future__ import annotations

from wirewitness.analyser.engine.outliers.populations import CLIENT, Measure, Population, evidence, quarters

_SENT, _GOT = "direction = 'client_to_server'", "direction = 'server_to_client'"

# From one address to another one and back: not a device that moved once.
_ADDRESSES = f"""
    select 'mqtt' as likes, client_id, count(*) filter (moved) as moves, 1 as one,
           count(distinct client_address) as addresses, {evidence("flow_id")}
    from (select *, coalesce(client_address <> lag(client_address) over (partition by client_id order by ts), false)
                        as moved
          from mqtt_connections where client_id is not null and connect_seen)
    group by client_id"""
_CONNECTIONS = f"""
    select coalesce(server_address, '') as likes, {CLIENT}, count(*) as connections,
           {evidence("flow_id")}
    from mqtt_connections where client_id is not null and connect_seen
    group by server_address, {CLIENT}"""

_SUBSCRIBED = f"""
    select coalesce(server_address, '') as likes, {CLIENT}, topic_filter, count(*) as subscribed,
           count(distinct flow_id) as connections, 0 as none,
           count(*) filter (requested_qos > granted_qos) as lowered, max(requested_qos) as asked_qos,
           min(granted_qos) as granted_qos, {evidence()}
    from mqtt_subscriptions where event = 'subscribe' group by server_address, {CLIENT}, topic_filter"""
_SAME_FILTER = f"""
    select topic_filter as likes, client_address, topic_filter, count(distinct client_id) as clients, {evidence()}
    from mqtt_subscriptions where event = 'subscribe' group by client_address, topic_filter"""
# Filters of an earlier connection that the last one neither asked for nor has in a session.
_UNSUBSCRIBED = f"""
    with last as (select client_id, arg_max(flow_id, ts) as flow_id, arg_max(session_present, ts) as resumed,
                         arg_max(coalesce(ts_end, ts), ts) as until, count(*) as connections, max(ts) as newest
                  from mqtt_connections where client_id is not null and connect_seen group by client_id)
    select 'mqtt' as likes, last.client_id, any_value(filters.client_address) as client_address,
           count(distinct topic_filter) as filters, 0 as none, any_value(topic_filter) as topic_filter,
           {evidence("filters.exchange_id", "filters.ts")}
    from last join mqtt_subscriptions as filters on filters.client_id = last.client_id
    where event = 'subscribe' and not coalesce(resumed, false) and connections > 1
          and epoch_ns(until) - epoch_ns(newest) > 5e9
          and not exists (from mqtt_subscriptions as again where again.flow_id = last.flow_id)
    group by last.client_id"""

# The same message, not a retained one, on several connections; retained ones on each.
_REPEATED = f"""
    with again as (select client_id from mqtt_connections where client_id is not null
                   group by client_id having count(*) >= 3)
    select 'mqtt' as likes, {CLIENT}, topic, max(connections) filter (not retain) as again, 1 as one,
           sum(samples)::bigint as samples, min(first_ns) as first_ns, max(last_ns) as last_ns,
           arg_max(ids, connections) as ids
    from (select {CLIENT}, topic, coalesce(retain, false) as retain, payload_crc32,
                 count(distinct flow_id) as connections, {evidence("message_id")}
          from mqtt_publishes semi join again using (client_id)
          where {_GOT} and topic is not null and qos > 0
          group by all)
    group by {CLIENT}, topic"""
_RETAINED = f"""
    select 'mqtt' as likes, {CLIENT}, count(*) as got, count(distinct topic) as topics,
           count(distinct flow_id) as connections, {evidence("message_id")}
    from mqtt_publishes where {_GOT} and retain and client_id is not null group by {CLIENT}"""

# A payload that a client got and sent, again and again: copiers in a circle. Those that are sent most are looked at.
_ROUND = f"""
    with sent as (
        select payload_crc32, count(*) as times, count(distinct client_id) as clients,
               count(distinct topic) as topics, min(topic) as topic,
               string_agg(distinct client_id, ', ' order by client_id) as names, {evidence("message_id")}
        from mqtt_publishes where {_SENT} and payload_bytes > 3 and not coalesce(dup, false)
        group by payload_crc32, payload_bytes
        having count(*) >= 20 and (count(distinct client_id) > 1 or count(distinct topic) > 1)
        order by times desc, payload_crc32 limit 20),
    own as (select flow_id, payload_crc32, max(ts) filter (direction = 'client_to_server') as last,
                   min(ts) filter (direction = 'server_to_client') as first
            from mqtt_publishes semi join sent using (payload_crc32) group by flow_id, payload_crc32)
    select 'mqtt' as likes, topic, times, names, topics, clients, 0 as none, samples, first_ns, last_ns, ids
    from sent semi join (from own where first < last) as own using (payload_crc32)"""

_TOPICS = f"""
    select 'mqtt' as likes, topic, any_value(client_id) as client_id, any_value(client_address) as client_address,
           case when topic like '/%' or topic like '%//%' then count(*) end as times, 0 as none,
           {evidence("message_id")}
    from mqtt_publishes where {_SENT} and topic is not null group by topic"""
# One topic until a time, another one since; others keep theirs.
_CHANGED = f"""
    with topics as (
        select {CLIENT}, topic, min(ts) as began, max(ts) as ended, count(*) as times, {evidence("message_id")}
        from mqtt_publishes where {_SENT} and topic is not null and client_id is not null group by {CLIENT}, topic)
    select 'mqtt' as likes, {CLIENT}, 0 as none, case when count(*) = 2 and min(times) >= 5
               and min(ended) < max(began) then max(times) end as times,
           arg_min(topic, began) as topic_before, arg_max(topic, began) as topic_now, sum(samples)::bigint as samples,
           min(first_ns) as first_ns, max(last_ns) as last_ns, arg_max(ids, began) as ids
    from topics group by {CLIENT}"""

_ARRIVAL = f"""
    select coalesce(topic_filter, '') as likes, subscriber_client_id as client_id, subscriber_address as client_address,
           topic_filter, case when count(*) filter (status = 'missing') >= 2
               and count(*) filter (status = 'missing') > 0.2 * count(*) then count(*) filter (status = 'missing') end
               as missing,
           count(*) filter (status in ('delivered', 'sent')) as arrived, 0 as none,
           median(latency_ms) as latency_ms, median(acknowledged_ms) as acknowledged_ms, {evidence("message_id")}
    from mqtt_deliveries group by subscriber_client_id, subscriber_address, topic_filter"""
_NOBODY = f"""
    select 'mqtt' as likes, topic, any_value(client_id) as client_id, any_value(client_address) as client_address,
           case when sum(expected_deliveries) >= 5 and sum(deliveries) = 0 then count(*) end as times, 0 as none,
           {evidence("message_id")}
    from mqtt_publishes where {_SENT} and qos > 0 and topic is not null group by topic"""
_AWAY = f"""
    select 'mqtt' as likes, client_id, client_address, 0 as none, nullif(sum(qos_0_subscription), 0) as qos_0_lost,
           nullif(sum(qos_0_publish), 0) as qos_0_sent, nullif(sum(expired), 0) as expired,
           nullif(sum(messages) filter (not session_present), 0) as lost, count(*) as samples,
           min(epoch_ns(ts)) as first_ns, max(epoch_ns(ts_back)) as last_ns, [arg_max(next_exchange_id, ts)] as ids
    from mqtt_offline_periods group by {CLIENT}"""
# The will of an earlier connection in the place of what the next one had published.
_WILLS = f"""
    select 'mqtt' as likes, topic, client_id, client_address, count(*) as times, 0 as none, count(*) as samples,
           min(epoch_ns(ts)) as first_ns, max(epoch_ns(ts)) as last_ns, [arg_min(flow_id, ts)] as ids
    from (select *, lag(set_by) over own as set_before, lag(flow_id) over own as flow_before,
                 lag(client_id) over own as client_before
          from mqtt_retained window own as (partition by server_address, server_port, topic order by ts))
    where set_by = 'will' and set_before = 'publish' and client_before = client_id and flow_before <> flow_id
    group by topic, {CLIENT}"""

_ONE_BY_ONE = f"""
    with slow as (
        select {CLIENT} from mqtt_publishes where {_SENT} and qos > 0
        group by {CLIENT} having max(in_flight) <= 1 and count(*) >= 20 and median(completed_ms) > 20)
    select 'mqtt' as likes, {CLIENT}, count(*) as sent, median(completed_ms) as wait_ms, median(idle_ms) as idle_ms,
           {evidence("message_id")}
    from (select *, (epoch_ns(ts) - epoch_ns(lag(coalesce(ts_completed, ts_acknowledged)) over (
                        partition by flow_id order by ts))) / 1e6 as idle_ms
          from mqtt_publishes semi join slow using ({CLIENT}) where {_SENT} and qos > 0)
    group by {CLIENT}"""
_MESSAGES = f"(select *, message_id as exchange_id from mqtt_publishes where {_SENT})"
_GROWING = f"""
    select 'mqtt' as likes, * from (
        {
    quarters(
        "payload_bytes", CLIENT + ", topic", "(select *, message_id as exchange_id from mqtt_publishes) where " + _SENT
    )
})"""

_BOTH = ("client_id", "client_address")
POPULATIONS = (
    Population(
        "mqtt", "mqtt_connections", ("client_id",), _ADDRESSES,
        (Measure("addresses of one client id", "moves", "client id {client_id} connected from {addresses} addresses in "
                 "turn: it changed {value} times", usual="one", floor=0, ratio=1, weight=2.0),),
    ),
    Population(
        "mqtt", "mqtt_connections", _BOTH, _CONNECTIONS,
        (Measure("connections", "connections", "{who} connected {value} times", floor=5, two=5),),
    ),
    Population(
        "mqtt", "mqtt_subscriptions", (*_BOTH, "topic_filter"), _SUBSCRIBED,
        (
            Measure("subscribed again", "subscribed", "{who} subscribed to {topic_filter} {value} times, on {usual} "
                    "connections", usual="connections", floor=6, ratio=3, weight=1.2),
            Measure("QoS lowered", "lowered", "{who} asked QoS {asked_qos} for {topic_filter} and was granted "
                    "{granted_qos}, {value} times", usual="none"),
        ),
    ),
    Population(
        "mqtt", "mqtt_subscriptions", ("client_address", "topic_filter"), _SAME_FILTER,
        (Measure("clients with one filter", "clients", "{client_address} has {value} clients with the filter "
                 "{topic_filter}", floor=4, two=1),),
    ),
    Population(
        "mqtt", "mqtt_subscriptions", _BOTH, _UNSUBSCRIBED,
        (Measure("not subscribed any more", "filters", "{who} had subscribed to {value} filters, among them "
                 "{topic_filter}; on its last connection it has none and no session", usual="none", weight=2.0),),
    ),
    Population(
        "mqtt", "mqtt_publishes", (*_BOTH, "topic"), _REPEATED,
        (Measure("same message again", "again", "{who} was sent the same message of {topic} on {value} connections",
                 usual="one", floor=1, ratio=2, weight=1.5),),
    ),
    Population(
        "mqtt", "mqtt_publishes", _BOTH, _RETAINED,
        (Measure("retained again", "got", "{who} got {value} retained messages of {usual} topics, on {connections} "
                 "connections", usual="topics", floor=20, ratio=3),),
    ),
    Population(
        "mqtt", "mqtt_publishes", ("topic",), _ROUND,
        (Measure("goes round", "times", "one payload was published {value} times, on {topics} topics such as {topic}, "
                 "by clients that had got it: {names}", usual="none", floor=19, weight=2.0),),
    ),
    Population(
        "mqtt", "mqtt_publishes", ("client_id", "client_address", "topic"), _TOPICS,
        (Measure("empty topic level", "times", "{who} publishes to {topic}, which has an empty level, {value} times",
                 usual="none"),),
    ),
    Population(
        "mqtt", "mqtt_publishes", _BOTH, _CHANGED,
        (Measure("changed its topic", "times", "{who} published to {topic_before}, and only to {topic_now} since, "
                 "{value} times", usual="none", floor=4),),
    ),
    Population(
        "mqtt", "mqtt_deliveries", (*_BOTH, "topic_filter"), _ARRIVAL,
        (
            Measure("not delivered", "missing", "{value} messages for {topic_filter} did not reach {who}; {arrived} "
                    "did", usual="none", floor=1, weight=1.2),
            Measure("delivery", "latency_ms", "{who} gets messages of {topic_filter} {value} after they were published",
                    unit="ms", floor=100, samples=5, two=20),
            Measure("acknowledged", "acknowledged_ms", "{who} acknowledges messages of {topic_filter} after {value}",
                    unit="ms", floor=50, samples=5, two=20),
        ),
    ),
    Population(
        "mqtt", "mqtt_publishes", ("client_id", "client_address", "topic"), _NOBODY,
        (Measure("reaches nobody", "times", "{value} messages of {who} to {topic} reached none of its subscribers",
                 usual="none", floor=4, weight=1.5),),
    ),
    Population(
        "mqtt", "mqtt_offline_periods", _BOTH, _AWAY,
        (
            Measure("lost while away, QoS 0", "qos_0_lost", "{who} missed {value} messages while it was away: its "
                    "subscription has QoS 0", usual="none", unit="", weight=1.5),
            Measure("lost while away, QoS 0", "qos_0_sent", "{who} missed {value} messages while it was away: they "
                    "were published with QoS 0", usual="none", weight=1.2),
            Measure("expired while away", "expired", "{value} messages expired while {who} was away", usual="none",
                    weight=1.2),
            Measure("lost while away", "lost", "{who} missed {value} messages while it was away, and its session was "
                    "gone", usual="none", weight=1.5),
        ),
    ),
    Population(
        "mqtt", "mqtt_retained", ("topic", "client_id"), _WILLS,
        (Measure("old will", "times", "the will of an earlier connection of {who} replaced what it had published to "
                 "{topic} since, {value} times", usual="none", weight=2.0),),
    ),
    Population(
        "mqtt", "mqtt_publishes", _BOTH, _ONE_BY_ONE,
        (Measure("one by one", "wait_ms", "{who} sends its {sent} messages one by one: each waits {value} to be "
                 "acknowledged, the next one leaves {usual} later", usual="idle_ms", unit="ms", ratio=10, floor=20),),
    ),
    Population(
        "mqtt", "mqtt_publishes", (*_BOTH, "topic"), _GROWING,
        (Measure("payload over time", "ended", "payloads of {who} to {topic} grow from {usual} to {value}",
                 usual="began", unit="bytes", ratio=2, floor=16),),
    ),
)  # fmt: skip
