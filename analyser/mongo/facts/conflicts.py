"""Who is in whose way at one document: `mongo_conflicts` and `mongo_overwritten`.

In: nothing. Out: how the tables are made. A document is known by the digest of its _id, where a write names nothing
else; two writes of one collection without such a digest are said to share the collection only.
"""

from __future__ import annotations

from wirewitness.analyser.base.times import NS_PER_MS
from wirewitness.analyser.engine.facts.steps import Made
from wirewitness.analyser.mongo.facts.client_commands import WRITES

# So soon after the end of a transaction a write goes on that waited for it: servers back off between tries.
_GOES_ON_MS = 250
_WAITED_LEAST_MS = 100
_WHO = "server_address, server_port, client_address, app_name, driver, database, collection, command"
_STEPS = {
    # Where a conflict ends a transaction the document may have been changed since its snapshot, which is its begin.
    "conflict_writes": f"""
        SELECT writes.*, coalesce(own.ts, writes.ts) AS since
        FROM (SELECT {_WHO}, ts, ts_response, latency_ms, exchange_id, lsid, txn_number, document_ids, status,
                     coalesce(error_code = 112 OR list_contains(write_error_codes, 112), false) AS refused
              FROM mongo_commands WHERE command IN {WRITES} AND ts_response IS NOT NULL) AS writes
        LEFT JOIN mongo_transactions AS own
            ON own.lsid = writes.lsid AND own.txn_number = writes.txn_number
        WHERE refused OR (status = 'ok' AND writes.document_ids IS NOT NULL AND latency_ms >= """
    + f"{_WAITED_LEAST_MS})",
    "conflict_holders": """
        SELECT *, unnest(list_distinct(string_split(namespaces_written, ','))) AS namespace FROM mongo_transactions""",
}
_PAIRS = """
        SELECT writes.*, holder.lsid AS holder_lsid, holder.txn_number AS holder_txn_number,
               holder.client_address AS holder_address, holder.app_name AS holder_app_name,
               holder.driver AS holder_driver, coalesce(holder.ts_started, holder.ts) AS ts_holder_started,
               holder.ts_ended AS ts_holder_ended, holder.outcome AS holder_outcome,
               holder.exchange_id AS holder_exchange_id,
               CASE WHEN list_has_any(writes.document_ids, holder.document_ids) THEN 'document'
                    WHEN writes.document_ids IS NULL OR holder.document_ids IS NULL THEN 'collection' END AS same
        FROM conflict_writes AS writes JOIN conflict_holders AS holder
            ON holder.server_address = writes.server_address AND holder.server_port = writes.server_port
            AND holder.namespace = writes.database || '.' || writes.collection
            AND holder.lsid IS DISTINCT FROM writes.lsid AND holder.ts < writes.ts_response
            AND coalesce(holder.ts_ended, holder.ts_last, holder.ts) >= CASE WHEN holder.outcome = 'open'
                THEN holder.ts ELSE writes.since END"""
_ROWS = f"""
    SELECT *, CASE WHEN refused THEN 'refused' ELSE 'waited' END AS kind, latency_ms AS waited_ms
    FROM ({_PAIRS})
    WHERE same IS NOT NULL AND (refused OR (same = 'document' AND ts_holder_started < ts AND ts_holder_ended > ts
        AND epoch_ns(ts_response) BETWEEN epoch_ns(ts_holder_ended) - {50 * NS_PER_MS}
            AND epoch_ns(ts_holder_ended) + {_GOES_ON_MS * NS_PER_MS}))"""
CONFLICTS = Made("EXISTS (FROM mongo_transactions)", _STEPS, _ROWS, is_product=True)

_APPLICATION = "client_address, app_name, driver"
_OF_DOCUMENT = "server_address, server_port, database, collection, document_id"
# A document that is set as a whole (its shape is an object), or fields of it to values that were known before: not by
# $inc and its like.
_SETS = (
    '(query_shape LIKE \'%"u":{"$set":%\' AND query_shape NOT LIKE \'%"$inc"%\' OR '
    'query_shape LIKE \'%"u":"?object"%\')'
)
_OVERWRITTEN_STEPS = {
    "document_writes": f"""
        SELECT {_WHO}, document_ids[1] AS document_id, ts, ts_response, exchange_id, query_shape
        FROM mongo_commands
        WHERE command = 'update' AND status = 'ok' AND documents_sent = 1 AND len(document_ids) = 1 AND n = 1
            AND autocommit IS NOT false AND ts_response IS NOT NULL AND {_SETS}""",
    "document_reads": f"""
        SELECT {_APPLICATION}, server_address, server_port, database, collection, document_ids[1] AS document_id,
               ts, ts_response, exchange_id
        FROM mongo_commands
        WHERE command = 'find' AND status = 'ok' AND len(document_ids) = 1 AND documents_returned = 1
            AND ts_response IS NOT NULL
            AND document_ids[1] IN (SELECT document_id FROM document_writes GROUP BY ALL HAVING count(*) > 1)""",
    # Each write with the last read of its application before it.
    "document_changes": f"""
        SELECT writes.*, reads.exchange_id AS read_exchange_id, reads.ts AS ts_read_asked, reads.ts_response AS ts_read
        FROM document_writes AS writes ASOF JOIN document_reads AS reads
            ON {" AND ".join(f"writes.{c} = reads.{c}" for c in (*_OF_DOCUMENT.split(", "), "client_address"))}
            AND coalesce(writes.app_name, '') = coalesce(reads.app_name, '') AND writes.ts >= reads.ts_response
        WHERE writes.database IS NOT NULL""",
}
_OVERWRITTEN_ROWS = f"""
    SELECT mine.*, lost.exchange_id AS lost_exchange_id, lost.ts AS ts_lost, lost.client_address AS lost_address,
           lost.app_name AS lost_app_name, lost.driver AS lost_driver
    FROM document_changes AS mine JOIN document_changes AS lost
        ON {" AND ".join(f"mine.{c} = lost.{c}" for c in _OF_DOCUMENT.split(", "))}
        AND (mine.client_address <> lost.client_address OR coalesce(mine.app_name, '') <> coalesce(lost.app_name, ''))
        AND lost.ts >= mine.ts_read AND lost.ts_response <= mine.ts AND lost.ts_read <= mine.ts
        AND mine.query_shape = lost.query_shape
    QUALIFY row_number() OVER (PARTITION BY mine.exchange_id ORDER BY lost.ts DESC) = 1"""
OVERWRITTEN = Made(
    "EXISTS (FROM mongo_commands WHERE command = 'update' AND len(document_ids) = 1)",
    _OVERWRITTEN_STEPS, _OVERWRITTEN_ROWS,
)  # fmt: skip
