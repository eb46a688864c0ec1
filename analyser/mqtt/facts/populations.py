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

# PINGREQ beside those that the keep-alive asks for where nothing else is sent.
_PINGS = f"""
    select 'mqtt' as likes, {CLIENT}, sum(pings) as pings, any_value(keep_alive_s) as keep_alive_s,
           sum(epoch_ns(coalesce(ts_closed, observed_until)) - epoch_ns(ts)) / 1e9 / any_value(keep_alive_s) as due,
           {evidence("flow_id")}
    from mqtt_connections where client_id is not null and keep_alive_s > 0 group by {CLIENT}"""
_SUBSCRIBED = f"""
    select coalesce(server_address, '') as likes, {CLIENT}, topic_filter, count(*) as subscribed,
           count(distinct flow_id) as connections, 0 as none,
           count(*) filter (requested_qos > granted_qos) as lowered, max(requested_qos) as asked_qos,
           min(granted_qos) as granted_qos, {evidence()}
    from mqtt_subscriptions where event = 'subscribe' group by server_address, {CLIENT}, topic_filter"""
_SAME_FILTER = f"""
    select topic_filter as likes, client_address, topic_filter, count(distinct client_id) as clients, {evidence()}
    from mqtt_subscriptions where event = 'subscribe' group by client_address, topic_filter"""
# Filters of an earlier connection that the next one neither asked for nor has in a session.
_UNSUBSCRIBED = """
    select 'mqtt' as likes, client_id, client_address, count(distinct topic_filter) as filters, 0 as none,
           min(topic_filter) as topic_filter, count(*) as samples, min(epoch_ns(ts)) as first_ns,
           max(epoch_ns(ts_until)) as last_ns, [arg_max(exchange_id, ts)] as ids
    from mqtt_dropped_filters group by client_id, client_address"""

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
# Messages of a client that it had sent on an earlier connection already, many different ones.
_SENT_AGAIN = f"""
    with again as (select client_id from mqtt_connections where client_id is not null
                   group by client_id having count(*) >= 3)
    select 'mqtt' as likes, {CLIENT}, topic, count(*) filter (connections > 1) as again,
           count(*) filter (connections = 1) as once, max(connections) as connections,
           sum(samples)::bigint as samples, min(first_ns) as first_ns, max(last_ns) as last_ns,
           arg_max(ids, connections) as ids
    from (select {CLIENT}, topic, payload_crc32, count(distinct flow_id) as connections, {evidence("message_id")}
          from mqtt_publishes semi join again using (client_id)
          where {_SENT} and topic is not null and not coalesce(dup, false) and payload_bytes >= 4
          group by all)
    group by {CLIENT}, topic"""
_RETAINED = f"""
    select 'mqtt' as likes, {CLIENT}, count(*) as got, count(distinct topic) as topics,
           count(distinct flow_id) as connections, {evidence("message_id")}
    from mqtt_publishes where {_GOT} and retain and client_id is not null group by {CLIENT}"""

# A payload that a client got on one topic and sent on another one, again and again: copiers in a circle.
_ROUND = """
    select 'mqtt' as likes, to_topic as topic, from_topic, client_id, client_address, copies_count as times, 0 as none,
           copies_count as samples, epoch_ns(ts) as first_ns, epoch_ns(ts_last) as last_ns, [message_id] as ids
    from mqtt_topic_rounds"""

# How each client publishes on each topic: names with empty levels, one topic until a time and another one since, a
# regular stream that ended while its likes went on, and one that got denser.
_HABIT = (
    "messages as samples, epoch_ns(ts) as first_ns, epoch_ns(ts_last) as last_ns, [message_id, last_message_id] as ids"
)
_LATEST = "max(epoch_ns(ts_last)) over (partition by server_address, shape)"
_HABITS = f"""
    select coalesce(server_address, '') || ' ' || shape as likes, client_id, client_address, topic, 0 as none, gap_ms,
           case when topic like '/%' or topic like '%//%' then messages end as times, longest_gap_ms,
           case when messages >= 20 and longest_gap_ms < 3 * gap_ms and whole
               then (least(epoch_ns(ts_heard), {_LATEST}) - epoch_ns(ts_last)) / 1e6 end as silent_ms,
           began_gap_ms, ended_gap_ms, first_kind, last_kind, {_HABIT},
           case when first_kind <> last_kind then messages end as changed,
           case when likes >= 2 and likes_of_kind = 0 and kind_turns = 0 then messages end as alone
    from mqtt_publisher_habits"""
_CHANGED = """
    select 'mqtt' as likes, client_id, client_address, 0 as none,
           case when count(*) = 2 and min(ts_last) < max(ts) then max(messages) end as times,
           arg_min(topic, ts) as topic_before, arg_max(topic, ts) as topic_now, sum(messages)::bigint as samples,
           min(epoch_ns(ts)) as first_ns, max(epoch_ns(ts_last)) as last_ns, [arg_max(message_id, ts)] as ids
    from mqtt_publisher_habits group by client_id, client_address"""

# One payload again and again, at the end or all the time, where others differ.
_CONTENTS = f"""
    select coalesce(server_address, '') || ' ' || shape as likes, client_id, client_address, topic,
           case when contents > 1 then last_run end as last_run, greatest(longest_before, 1) as longest_before,
           messages::double / contents as turns, {_HABIT.replace("[message_id", "[run_message_id")}
    from mqtt_publisher_contents where contents > 0"""
_ARRIVAL = f"""
    select coalesce(topic_filter, '') as likes, subscriber_client_id as client_id, subscriber_address as client_address,
           topic_filter, coalesce('client ' || subscriber_client_id || ' at ' || subscriber_address,
                    'anybody of them') as reader,
           case when count(*) filter (status = 'missing') >= 2
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
# The will of an earlier connection in the place of what the next one had published, or while the next one lives.
_WILLS = """
    select 'mqtt' as likes, topic, next_client_id as client_id, next_client_address as client_address,
           count(*) as times, 0 as none, count(*) as samples, min(epoch_ns(ts)) as first_ns,
           max(epoch_ns(ts)) as last_ns, [arg_min(coalesce(sent_message_id, flow_id), ts)] as ids
    from mqtt_wills
    where next_flow_id is not null
          and (newer_message_id is not null or (retain and ts_corrected is null and births > 0))
    group by topic, next_client_id, next_client_address"""

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
        "length_bytes", CLIENT + ", topic", "(select *, message_id as exchange_id from mqtt_publishes) where " + _SENT
    )
})"""

_BOTH = ("client_id", "client_address")
POPULATIONS = (
    Population(
        "mqtt", "mqtt_connections", ("client_id",), _ADDRESSES,
        (Measure("addresses of one client id", "moves", "concurrent",
                 "client id {client_id} connected from {addresses} addresses in "
                 "turn: it changed {value} times", usual="one", floor=0, ratio=1, weight=2.0),),
        asks="count(distinct client_address) > 1",
    ),
    Population(
        "mqtt", "mqtt_connections", _BOTH, _CONNECTIONS,
        (Measure("connections", "connections", "repeated", "{who} connected {value} times", floor=5, two=5),),
        asks="count(*) > 5",
    ),
    Population(
        "mqtt", "mqtt_connections", _BOTH, _PINGS,
        (Measure("PINGREQ", "pings", "repeated", "{who} sent {value} PINGREQ, where its keep-alive of {keep_alive_s} s "
                 "asks for {usual}", usual="due", floor=20, ratio=5),),
        asks="sum(pings) > 20",
    ),
    Population(
        "mqtt", "mqtt_subscriptions", (*_BOTH, "topic_filter"), _SUBSCRIBED,
        (
            Measure("subscribed again", "subscribed", "repeated",
                    "{who} subscribed to {topic_filter} {value} times, on {usual} "
                    "connections", usual="connections", floor=6, ratio=3, weight=1.2),
            Measure("QoS lowered", "lowered", "refused",
                    "{who} asked QoS {asked_qos} for {topic_filter} and was granted "
                    "{granted_qos}, {value} times", usual="none"),
        ),
        asks="count(*) > 6 or bool_or(requested_qos > granted_qos)",
    ),
    Population(
        "mqtt", "mqtt_subscriptions", ("client_address", "topic_filter"), _SAME_FILTER,
        (Measure("clients with one filter", "clients", "repeated",
                 "{client_address} has {value} clients with the filter "
                 "{topic_filter}", floor=4, two=1),),
        asks="count(distinct client_id) > 4",
    ),
    Population(
        "mqtt", "mqtt_dropped_filters", _BOTH, _UNSUBSCRIBED,
        (Measure("not subscribed any more", "filters", "stalled", "{who} had subscribed to {value} filters, among them "
                 "{topic_filter}; on its next connection it has them no more, and no session", usual="none",
                 weight=2.0),),
    ),
    Population(
        "mqtt", "mqtt_publishes", (*_BOTH, "topic"), _REPEATED,
        (Measure("same message again", "again", "repeated",
                 "{who} was sent the same message of {topic} on {value} connections",
                 usual="one", floor=1, ratio=2, weight=1.5),),
        asks="count(distinct flow_id) > 2",
    ),
    Population(
        "mqtt", "mqtt_publishes", (*_BOTH, "topic"), _SENT_AGAIN,
        (Measure("sent on each connection", "again", "repeated", "{who} sent {value} of its payloads to {topic} on "
                 "several connections, up to {connections}, and {usual} once", usual="once", floor=4, ratio=2),),
        asks="count(distinct flow_id) > 1",
    ),
    Population(
        "mqtt", "mqtt_publishes", _BOTH, _RETAINED,
        (Measure("retained again", "got", "repeated",
                 "{who} got {value} retained messages of {usual} topics, on {connections} "
                 "connections", usual="topics", floor=4, ratio=3),),
        asks="count(*) filter (retain) > 4",
    ),
    Population(
        "mqtt", "mqtt_topic_rounds", (*_BOTH, "topic"), _ROUND,
        (Measure("goes round", "times", "repeated",
                 "{who} published {value} times on {topic} what it had got on {from_topic}",
                 usual="none", floor=19, weight=2.0),),
    ),
    Population(
        "mqtt", "mqtt_publisher_habits", (*_BOTH, "topic"), _HABITS,
        (
            Measure("empty topic level", "times", "differs",
                    "{who} publishes to {topic}, which has an empty level, {value} times",
                    usual="none"),
            Measure("payloads changed", "changed", "differs",
                    "{value} messages of {who} to {topic} begin with payloads of kind "
                    "{first_kind} and end with {last_kind}", usual="none", floor=4),
            Measure("payloads of its own", "alone", "differs",
                    "{value} messages of {who} to {topic} have payloads of kind "
                    "{first_kind}, those of its likes never", usual="none", floor=4),
            Measure("publishes no more", "silent_ms", "stalled",
                    "{who} published to {topic} with {usual} between at most, and "
                    "not for {value} since, while others went on", usual="longest_gap_ms", unit="ms", ratio=5,
                    floor=3_000, weight=1.5),
            Measure("rate", "gap_ms", "repeated",
                    "{who} publishes to {topic} each {value}", unit="ms", ratio=5, low=True, floor=20,
                    samples=10, two=20),
            Measure("publishes more often", "began_gap_ms", "repeated",
                    "{who} publishes to {topic} each {usual}, at first each "
                    "{value}", usual="ended_gap_ms", unit="ms", ratio=8, floor=20),
        ),
    ),
    Population(
        "mqtt", "mqtt_publisher_contents", (*_BOTH, "topic"), _CONTENTS,
        (
            Measure("same payload", "last_run", "stalled",
                    "{who} publishes one payload to {topic} since {value} messages; the "
                    "most before were {usual}", usual="longest_before", ratio=5, floor=9, weight=1.2),
            Measure("payloads again", "turns", "repeated",
                    "{who} publishes each payload to {topic} {value} times", floor=4, two=20,
                    samples=20),
        ),
    ),
    Population(
        "mqtt", "mqtt_publisher_habits", _BOTH, _CHANGED,
        (Measure("changed its topic", "times", "differs",
                 "{who} published to {topic_before}, and only to {topic_now} since, "
                 "{value} times", usual="none", floor=4),),
        asks="max(messages) > 4",
    ),
    Population(
        "mqtt", "mqtt_deliveries", (*_BOTH, "topic_filter"), _ARRIVAL,
        (
            Measure("not delivered", "missing", "stalled",
                    "{value} messages for {topic_filter} did not reach {reader}; "
                    "{arrived} did", usual="none", floor=1, weight=1.2),
            Measure("delivery", "latency_ms", "waiting",
                    "{who} gets messages of {topic_filter} {value} after they were published",
                    unit="ms", floor=100, samples=5, two=20),
            Measure("acknowledged", "acknowledged_ms", "waiting",
                    "{who} acknowledges messages of {topic_filter} after {value}",
                    unit="ms", floor=50, samples=5, two=20),
        ),
        asks="count(*) filter (status = 'missing') > 1 or max(latency_ms) - least(min(latency_ms), 0) > 100 "
             "or max(acknowledged_ms) > 50",
    ),
    Population(
        "mqtt", "mqtt_publishes", ("client_id", "client_address", "topic"), _NOBODY,
        (Measure("reaches nobody", "times", "stalled",
                 "{value} messages of {who} to {topic} reached none of its subscribers",
                 usual="none", floor=4, weight=1.5),),
        asks="sum(expected_deliveries) > 4",
    ),
    Population(
        "mqtt", "mqtt_offline_periods", _BOTH, _AWAY,
        (
            Measure("lost while away, QoS 0", "qos_0_lost", "stalled",
                    "{who} missed {value} messages while it was away: its "
                    "subscription has QoS 0", usual="none", unit="", weight=1.5),
            Measure("lost while away, QoS 0", "qos_0_sent", "stalled",
                    "{who} missed {value} messages while it was away: they "
                    "were published with QoS 0", usual="none", weight=1.2),
            Measure("expired while away", "expired", "stalled",
                    "{value} messages expired while {who} was away", usual="none",
                    weight=1.2),
            Measure("lost while away", "lost", "stalled",
                    "{who} missed {value} messages while it was away, and its session was "
                    "gone", usual="none", weight=1.5),
        ),
        asks="sum(qos_0_subscription) > 0 or sum(qos_0_publish) > 0 or sum(expired) > 0 "
             "or sum(messages) filter (not session_present) > 0",
    ),
    Population(
        "mqtt", "mqtt_wills", ("topic", "client_id"), _WILLS,
        (Measure("old will", "times", "went back",
                 "the will of an earlier connection of {who} on {topic} came after it was back, "
                 "or stands there since, {value} times", usual="none", weight=2.0),),
    ),
    Population(
        "mqtt", "mqtt_publishes", _BOTH, _ONE_BY_ONE,
        (Measure("one by one", "wait_ms", "waiting",
                 "{who} sends its {sent} messages one by one: each waits {value} to be "
                 "acknowledged, the next one leaves {usual} later", usual="idle_ms", unit="ms", ratio=10, floor=20),),
        asks="count(*) >= 20",
    ),
    Population(
        "mqtt", "mqtt_publishes", (*_BOTH, "topic"), _GROWING,
        (Measure("size over time", "ended", "growing", "messages of {who} to {topic} grow from {usual} to {value}",
                 usual="began", unit="bytes", ratio=2, floor=16),),
        asks="count(*) >= 32",
    ),
)  # fmt: skip
