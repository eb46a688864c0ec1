"""What stands out in Kafka's topics: producers and what they write, waits of both sides, leaders, clusters.

In: nothing. Out: POPULATIONS, over Kafka's finished tables.
"""

from __future__ import annotations

from wirewitness.analyser.engine.outliers.populations import CLIENT, Measure, Population, evidence, quarters

_PRODUCE = f"""
    select coalesce(topic, '') as likes, {CLIENT}, topic,
           median((epoch_ns(ts_response) - epoch_ns(ts)) / 1e6) as wait_ms, avg(records_count) as records,
           abs(median(base_timestamp - epoch_ns(ts) / 1e6) filter (base_timestamp > 0)) as skew_ms, 'kafka' as every,
           0 as none, sum(records_count)::bigint as written, sum(batch_bytes) / greatest(sum(records_count), 1) as size,
           {evidence()}
    from kafka_produce_batches group by {CLIENT}, topic"""
# What each client writes to a topic, beside what most others do, and what it wrote at first.
_WRITERS = f"""
    with writers as (
        select *, case when first_keyed then 'keys' else 'no keys' end as first_key,
               case when last_keyed then 'keys' else 'no keys' end as last_key
        from kafka_topic_writers where known_count >= 5),
    habits as ({
    " union all ".join(
        f"select {CLIENT}, topic, '{what}' as what, first_{name} as first, last_{name} as now, {turns}_turns as turns, "
        f"{turns}_after as after, batches_count, fill_ms, exchange_id, last_exchange_id, ts, ts_last from writers"
        for what, name, turns in (("values", "kind", "kind"), ("keys", "key", "key"), ("codec", "codec", "codec"))
    )
}),
    beside as (
        select {CLIENT}, topic, what, first, now, turns, after, fill_ms, batches_count, batches_count as samples,
               epoch_ns(ts) as first_ns, epoch_ns(ts_last) as last_ns, [exchange_id, last_exchange_id] as ids,
               count(*) over (partition by topic, what) as writers,
               count(*) over (partition by topic, what, now) as alike,
               mode(now) over (partition by topic, what) as usual_now
        from habits where now is not null)
    select coalesce(topic, '') as likes, 'kafka' as every, *, 0 as none,
           case when what = 'codec' then fill_ms end as filled_ms,
           case when alike = 1 and writers >= 3 and max(alike) over (partition by topic, what) = writers - 1
               then batches_count end as alone,
           case when turns = 1 and least(after, batches_count - after) >= 5 then batches_count end as changed
    from beside"""
_SIZE_GROWS = f"""
    select coalesce(topic, '') as likes, * from (
        {
    quarters("batch_bytes / records_count", f"{CLIENT}, topic", "kafka_produce_batches where records_count > 0")
})"""
_ACKS = f"""
    select coalesce(topic, '') as likes, topic, acks, median((epoch_ns(ts_response) - epoch_ns(ts)) / 1e6) as wait_ms,
           arg_max(client_id, ts) as client_id, {evidence()}
    from kafka_produce_batches where ts_response is not null group by topic, acks"""
# A batch that was sent before: same time of its first record, size and number of records, without producer id.
_SENT_AGAIN = f"""
    select coalesce(topic, '') as likes, {CLIENT}, topic, partition, count(*) as copies, 0 as none,
           sum(samples)::bigint as samples, min(first_ns) as first_ns, max(last_ns) as last_ns,
           arg_max(ids, samples) as ids
    from (select {CLIENT}, topic, partition, {evidence()} from kafka_produce_batches
          where error_code = 0 and coalesce(producer_id, -1) < 0 and base_timestamp > 0
          group by {CLIENT}, topic, partition, base_timestamp, batch_bytes, records_count
          having count(*) > 1 and max(epoch_ns(ts)) - min(epoch_ns(ts)) > 500e6)
    group by {CLIENT}, topic, partition"""

# With min_bytes of 1 a fetch waits for the next record, which tells nothing: others of the topic say what is usual.
_WAITS = f"""
    with waits as (
        select {CLIENT}, topic, min_bytes, median((epoch_ns(ts_response) - epoch_ns(ts)) / 1e6) as wait_ms,
               max(max_wait_ms) as max_wait_ms, {evidence()}
        from kafka_fetch_partitions where records_count > 0 and coalesce(replica_id, -1) < 0
        group by {CLIENT}, topic, min_bytes)
    select coalesce(topic, '') as likes, *
    from waits join (select topic, median(wait_ms) as at_once_ms from waits where min_bytes <= 1 group by topic)
        using (topic)
    where min_bytes > 1"""

# The next request leaves when the response before has come, and each takes long.
_ONE_BY_ONE = f"""
    with slow as (
        select {CLIENT} from exchanges where operation = 'Produce'
        group by {CLIENT} having count(*) >= 20 and median(latency_ms) > 20)
    select 'kafka' as likes, {CLIENT}, count(*) as sent, median(latency_ms) as wait_ms, median(idle_ms) as idle_ms,
           {evidence()}
    from (select *, (epoch_ns(ts) - epoch_ns(lag(ts_response) over (partition by flow_id order by ts))) / 1e6 as idle_ms
          from exchanges semi join slow using ({CLIENT}) where operation = 'Produce')
    group by {CLIENT} having min(idle_ms) >= 0"""

_LEADERLESS = f"""
    select coalesce(topic, '') as likes, topic, partition, 0 as none,
           case when arg_max(leader_id, ts) < 0 then count(*) filter (leader_id < 0) end as without, {evidence()}
    from kafka_partitions group by cluster_id, topic, partition"""
# Partitions of a topic that each broker leads at the end.
_LEADING = """
    with brokers as (select cluster_id, node_id, min(host || ':' || port) as place, arg_min(exchange_id, ts) as asked
                     from kafka_brokers where host is not null group by cluster_id, node_id),
    last as (select cluster_id, topic, partition, arg_max(leader_id, ts) as leader_id, min(ts) as ts, max(ts) as ts_last
             from kafka_leaders where topic is not null group by cluster_id, topic, partition)
    select coalesce(cluster_id, '') || ' ' || topic as likes, node_id, place, topic,
           count(*) filter (leader_id = node_id) as led, count(*) as samples, min(epoch_ns(ts)) as first_ns,
           max(epoch_ns(ts_last)) as last_ns, [any_value(asked)] as ids
    from brokers join last using (cluster_id) group by cluster_id, node_id, place, topic"""
_TRANSACTIONAL_IDS = f"""
    select 'kafka' as likes, {CLIENT}, count(distinct transactional_id) as transactional_ids, {evidence()}
    from kafka_transactions where transactional_id is not null and client_id is not null group by {CLIENT}"""
_CLUSTERS = f"""
    select 'kafka' as likes, server_address, server_port, count(distinct cluster_id) as clusters, 1 as one,
           string_agg(distinct cluster_id, ', ' order by cluster_id) as names, {evidence()}
    from exchanges where protocol = 'kafka' and cluster_id is not null group by server_address, server_port"""

POPULATIONS = (
    Population(
        "kafka", "kafka_produce_batches", ("client_id", "client_address", "topic"), _PRODUCE,
        (
            Measure("records per batch", "records", "repeated",
                    "{who} sends {value} per batch to {topic}", unit="records",
                    low=True, floor=2, samples=20),
            Measure("records written", "written", "growing",
                    "{who} wrote {value} to {topic}", unit="records", ratio=10, floor=500,
                    two=20),
            Measure("size of records", "size", "growing",
                    "records of {who} in {topic} have {value}, mean", unit="bytes", ratio=5,
                    floor=2_000, samples=20),
            Measure("record times", "skew_ms", "differs",
                    "times of records of {who} in {topic} are {value} off the time they "
                    "were sent", usual="none", unit="ms", floor=600_000, samples=3),
            Measure("record times", "skew_ms", "differs",
                    "times of records of {who} in {topic} are {value} off the time they "
                    "were sent", unit="ms", floor=1_000, samples=5, ratio=10, two=20, likes="every"),
        ),
    ),
    Population(
        "kafka", "kafka_topic_writers", ("client_id", "client_address", "topic"), _WRITERS,
        (
            Measure("writes otherwise", "alone", "differs",
                    "{value} batches of {who} to {topic} have {what}: {now}; those of its "
                    "other writers: {usual_now}", usual="none", floor=4),
            Measure("changed what it writes", "changed", "differs",
                    "batches of {who} to {topic} had {what}: {first} at first, "
                    "and {now} at the end, of {value}", usual="none", floor=4),
            Measure("time to fill", "filled_ms", "waiting",
                    "batches of {who} to {topic} are filled for {value}, median",
                    unit="ms", floor=500, two=5, likes="every", samples=3),
        ),
        asks="max(known_count) >= 5",
    ),
    Population(
        "kafka", "kafka_produce_batches", ("client_id", "client_address", "topic"), _SIZE_GROWS,
        (Measure("records grow", "ended", "growing",
                 "records of {who} in {topic} only grow: {usual} in the first quarter of the "
                 "time, {value} in the last", usual="began", unit="bytes", ratio=3, floor=500, weight=1.3),),
        asks="count(*) >= 32",
    ),
    Population(
        "kafka", "kafka_produce_batches", ("topic", "acks"), _ACKS,
        (Measure("acks", "wait_ms", "waiting",
                 "produce to {topic} with acks={acks} (client {client_id}) takes {value}, median",
                 unit="ms", floor=20, samples=5, two=5, weight=1.5),),
        asks="count(distinct acks) > 1",
    ),
    Population(
        "kafka", "kafka_produce_batches", ("client_id", "client_address", "topic", "partition"), _SENT_AGAIN,
        (Measure("same batch again", "copies", "repeated",
                 "{who} sent {value} batches to {where} that were in the log already, "
                 "without producer id", usual="none", weight=1.2),),
        asks="count(*) filter (coalesce(producer_id, -1) < 0) > 1",
    ),
    Population(
        "kafka", "kafka_fetch_partitions", ("client_id", "client_address", "topic"), _WAITS,
        (Measure("wait for records", "wait_ms", "waiting",
                 "{who} waits {value} for a fetch of {topic} that brings records "
                 "(min_bytes {min_bytes}, max_wait {max_wait_ms} ms); with min_bytes 1 it takes {usual}",
                usual="at_once_ms", unit="ms", ratio=10, floor=200, samples=3),),
        asks="bool_or(min_bytes > 1)",
    ),
    Population(
        "kafka", "exchanges", ("client_id", "client_address"), _ONE_BY_ONE,
        (Measure("one by one", "wait_ms", "waiting",
                 "{who} sends its {sent} Produce one by one: each waits {value} for its "
                 "response, the next one leaves {usual} later", usual="idle_ms", unit="ms", ratio=10, floor=20),),
        asks="count(*) filter (operation = 'Produce') >= 20",
    ),
    Population(
        "kafka", "kafka_partitions", ("topic", "partition"), _LEADERLESS,
        (Measure("no leader", "without", "stalled",
                 "{where} has no leader, as {value} responses say, the last one included",
                 usual="none", weight=1.5),),
        asks="bool_or(leader_id < 0)",
    ),
    Population(
        "kafka", "kafka_brokers", ("node_id", "place", "topic"), _LEADING,
        (Measure("partitions led", "led", "differs", "broker {node_id} at {place} leads {value} of {samples} "
                 "partitions of {topic} at the end", floor=2, two=3, samples=3),),
        asks="count(distinct node_id) > 1",
    ),
    Population(
        "kafka", "kafka_transactions", ("client_id", "client_address"), _TRANSACTIONAL_IDS,
        (Measure("transactional ids", "transactional_ids", "repeated", "{who} used {value} transactional ids",
                 floor=5, two=2),),
        asks="count(distinct transactional_id) > 5",
    ),
    Population(
        "kafka", "exchanges", ("server_address", "server_port"), _CLUSTERS,
        (Measure("clusters", "clusters", "differs",
                 "server {server_address}:{server_port} belongs to {value} clusters: {names}",
                 usual="one", ratio=1.5, weight=2.0),),
        asks="count(distinct cluster_id) > 1",
    ),
)  # fmt: skip
