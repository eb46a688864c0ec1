"""What producers do as transactions, and how long records take to their readers. In: nothing. Out: SQL of views.

A batch is read when a reader gets an answer that leads behind its last record; the time counts from the request that
wrote it to that answer. Readers are groups, without one clients.
"""

from __future__ import annotations

TRANSACTIONS = """
    select ts, cluster_id, transactional_id, client_id, client_address, producer_id, producer_epoch, outcome, ended_by,
           round((epoch_ns(coalesce(ts_ended, observed_until)) - epoch_ns(ts)) / 1e6, 6) as open_ms,
           partitions_count, batches_count, records_count, group_id, partitions, ts_begun, ts_last, ts_ended,
           ended_client_id, ended_client_address, transaction_timeout_ms, end_attempts, end_error_code, exchange_id
    from kafka_transaction_spans"""

READ_LATENCIES = """
    with written as (
        select coalesce(cluster_id, '') as cluster, coalesce(topic, topic_id, '') as topic, partition, last_offset,
               records_count, epoch_ns(ts) as written_ns
        from kafka_produce_batches where error_code = 0 and last_offset >= 0),
    reads as (
        select coalesce(cluster_id, '') as cluster, coalesce(topic, topic_id, '') as topic, partition,
               coalesce(group_id, '') as group_id, case when group_id is null then client_id end as client_id,
               next_offset, min(epoch_ns(coalesce(ts_response, ts))) as read_ns
        from kafka_fetch_partitions where coalesce(replica_id, -1) < 0 and error_code = 0 and next_offset is not null
        group by all),
    readers as (
        select cluster, topic, partition, group_id, client_id, max(next_offset) as reached from reads group by all),
    asked as (
        select w.*, r.group_id, coalesce(r.client_id, '') as reader, r.reached
        from written w join readers r using (cluster, topic, partition)),
    met as (
        select a.*, (n.read_ns - a.written_ns) / 1e6 as ms
        from asked a asof left join (select * replace (coalesce(client_id, '') as client_id) from reads) n
            on a.cluster = n.cluster and a.topic = n.topic and a.partition = n.partition and a.group_id = n.group_id
            and a.reader = n.client_id and a.last_offset < n.next_offset)
    select nullif(cluster, '') as cluster_id, nullif(topic, '') as topic, nullif(group_id, '') as group_id,
           nullif(reader, '') as client_id, count(*) filter (ms >= 0) as batches,
           sum(records_count) filter (ms >= 0)::bigint as records,
           quantile_cont(ms, 0.5) filter (ms >= 0) as median_ms, quantile_cont(ms, 0.99) filter (ms >= 0) as p99_ms,
           max(ms) filter (ms >= 0) as most_ms,
           coalesce(sum(records_count) filter (last_offset >= reached), 0)::bigint as unread
    from met group by all"""
