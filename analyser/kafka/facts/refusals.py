"""What a broker refused a client for good: `kafka_refusals`.

In: a connection with views of the Kafka tables and of exchanges. Out: the view of that table. Errors that no later try
heals (`dissectors/kafka/error_classes.py`), in responses to what producers and consumers need; those of Produce and of
commits are in `kafka_refused_batches` and `kafka_offset_commits`, logins in `kafka_authentications`. A resource (topic,
group, transactional id) is the one that the response names beside the error; FindCoordinator names none. Success is a
response without error for the same resource by the same client (address, client id) in the rows of the same table.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.stage import NOTHING, REFUSED, Held
from wirewitness.analyser.engine.facts.steps import Made, make_wanted_tables
from wirewitness.analyser.kafka.facts.clients import SENDER
from wirewitness.dissectors.kafka.error_classes import NEVER, NEVER_OF

APIS = (
    "Metadata", "DescribeTopicPartitions", "Fetch", "ListOffsets", "OffsetFetch", "OffsetForLeaderEpoch",
    "FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat",
    "StreamsGroupHeartbeat", "ShareFetch", "ShareAcknowledge", "InitProducerId", "AddPartitionsToTxn",
    "AddOffsetsToTxn", "EndTxn",
)  # fmt: skip
# Codes that stay in responses of one of these APIs only.
_PAIRS = tuple((api, code) for api, code in NEVER_OF if api in APIS)
_CODES = f"error_code IN {(*NEVER, *(code for _, code in _PAIRS))}"
_ERRORS = f"protocol = 'kafka' AND status = 'error' AND operation IN {APIS}"
_OF_API = " OR ".join(f"operation = '{api}' AND error_code = {code}" for api, code in _PAIRS)
_STAYS = f"(error_code IN {NEVER} OR {_OF_API})"
# Of `exchanges`: without any of these nobody is refused for good.
REFUSED_FOR_GOOD = f"{_ERRORS} AND {_STAYS}"
# Such a code says so at the first try only: later it may tell of a group that ended.
_AT_FIRST = f"""
    NOT ({_OF_API}) OR NOT EXISTS (
        FROM exchanges AS fine WHERE fine.protocol = 'kafka' AND fine.status = 'ok'
            AND fine.operation = exchanges.operation AND fine.client_id IS NOT DISTINCT FROM exchanges.client_id
            AND fine.client_address IS NOT DISTINCT FROM exchanges.client_address AND fine.ts < exchanges.ts)"""
# Tables with a row for each resource of a response: its kind, and the column that names it.
_ROWS_OF = {
    "kafka_partitions": ("topic", "coalesce(topic, topic_id)"),
    "kafka_fetch_partitions": ("topic", "coalesce(topic, topic_id)"),
    "kafka_share_fetches": ("topic", "coalesce(topic, topic_id)"),
    "kafka_list_offsets": ("topic", "topic"),
    "kafka_leader_epochs": ("topic", "topic"),
    "kafka_offset_fetches": ("topic", "coalesce(topic, topic_id)"),
    "kafka_group_events": ("group", "group_id"),
    "kafka_transactions": ("transactional id", "transactional_id"),
}
_SAME = "cluster, address, client, source, kind, resource"


def _rows(where: str) -> str:
    """Responses about resources, of all tables."""
    return " UNION ALL ".join(
        f"SELECT {SENDER}, '{table}' AS source, '{kind}' AS kind, {name} AS resource, error_code, "
        f"epoch_ns(ts) AS at_ns, exchange_id FROM {table} WHERE {where}"
        for table, (kind, name) in _ROWS_OF.items()
    )


_STEPS = {
    "ref_errors": f"""
        SELECT exchange_id, operation, server_address, server_port FROM exchanges
        WHERE {_ERRORS} AND ({_AT_FIRST})""",
    "ref_named": f"""
        SELECT named.* FROM ({_rows(_CODES)}) AS named
        SEMI JOIN ref_errors AS errors
            ON named.exchange_id = errors.exchange_id AND (named.error_code IN {NEVER} OR {_OF_API})""",
    "ref_refused": f"""
        SELECT {_SAME}, error_code, min(at_ns) AS at_ns, max(at_ns) AS last_ns, count(DISTINCT exchange_id) AS refusals,
               arg_min(exchange_id, at_ns) AS exchange_id, arg_max(exchange_id, at_ns) AS last_exchange_id
        FROM (FROM ref_named UNION ALL BY NAME
              SELECT {SENDER}, operation AS source, NULL AS kind, NULL AS resource, error_code, epoch_ns(ts) AS at_ns,
                     exchange_id
              FROM exchanges WHERE {_ERRORS} AND {_STAYS} AND ({_AT_FIRST})
                    AND exchange_id NOT IN (SELECT exchange_id FROM ref_named))
        GROUP BY ALL""",
    "ref_fine": f"""
        SELECT {_SAME}, at_ns FROM ({_rows("error_code = 0")}) SEMI JOIN ref_refused USING ({_SAME})
        UNION ALL
        SELECT {SENDER}, operation, NULL, NULL, epoch_ns(ts) FROM exchanges
        WHERE protocol = 'kafka' AND status = 'ok' AND operation IN (SELECT source FROM ref_refused)""",
    "ref_healed": """
        SELECT refused.exchange_id, refused.resource, refused.error_code, min(fine.at_ns) AS fine_ns
        FROM ref_refused AS refused JOIN ref_fine AS fine
            ON refused.cluster = fine.cluster AND refused.address = fine.address AND refused.client = fine.client
            AND refused.source = fine.source AND refused.resource IS NOT DISTINCT FROM fine.resource
            AND fine.at_ns > refused.at_ns
        GROUP BY ALL""",
}
_FINAL = """
    SELECT make_timestamp_ns(at_ns)::TIMESTAMPTZ_NS AS ts, make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last,
           nullif(cluster, '') AS cluster_id, nullif(client, '') AS client_id, nullif(address, '') AS client_address,
           errors.server_address, errors.server_port, errors.operation, kind AS resource_type, refused.resource,
           refused.error_code, refusals, make_timestamp_ns(fine_ns)::TIMESTAMPTZ_NS AS ts_succeeded,
           refused.exchange_id, last_exchange_id
    FROM ref_refused AS refused JOIN ref_errors AS errors USING (exchange_id)
    LEFT JOIN ref_healed AS healed
        ON refused.exchange_id = healed.exchange_id AND refused.error_code = healed.error_code
        AND refused.resource IS NOT DISTINCT FROM healed.resource"""
_MADE = {"kafka_refusals": Made(f"EXISTS (FROM exchanges WHERE {REFUSED_FOR_GOOD})", _STEPS, _FINAL)}


def add_refusals(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the view; tables that it is made of may be missing. Call it once."""
    make_wanted_tables(con, _MADE, REFUSED.reads)
    return NOTHING
