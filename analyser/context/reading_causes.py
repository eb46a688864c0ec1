"""What was known when a reader began, and what led it there, as SQL. In: the tables of `reading_runs.py`. Out: CAUSES.

Each step makes one temporary table of its name: commits, answers of OffsetFetch and ListOffsets, changes that somebody
asked for, and for each run of reading those that came before it.
"""

from __future__ import annotations

from analyser.context.losses import is_lost
from analyser.context.reading_runs import CLIENT, KEYS, OF_GROUPS, PART
from analyser.context.stored_offsets import DELETED_PARTITIONS, DELETED_TOPIC

_ANSWERED_NS = "epoch_ns(coalesce(ts_response, ts))"

# What the group's offsets were, as far as the capture shows. A commit without member id by a client that does not read
# the partition is a tool's: it moves the offset. What a transaction stored last counts from its end on.
_COMMITTED = f"""
    {KEYS}, {CLIENT}, {_ANSWERED_NS} AS at_ns, committed_offset, nullif(member_id, '') AS member_id, exchange_id"""
_ACCEPTED = "error_code = 0 AND committed_offset >= 0"
_STORED = {
    "reading_commits": f"""
        WITH ends AS (
            SELECT coalesce(cluster_id, '') AS cluster, producer_id, {_ANSWERED_NS} AS at_ns, committed
            FROM read_kafka_transactions WHERE event = 'end_txn' AND error_code = 0),
        sent AS (
            SELECT {_COMMITTED}, producer_id FROM read_kafka_offset_commits
            WHERE {_ACCEPTED} AND api = 'TxnOffsetCommit'),
        commits AS (
            SELECT {_COMMITTED}, true AS plain FROM read_kafka_offset_commits WHERE {_ACCEPTED} AND api = 'OffsetCommit'
            UNION ALL
            SELECT sent.* EXCLUDE producer_id REPLACE (ends.at_ns AS at_ns), false
            FROM sent ASOF JOIN ends
                ON sent.cluster = ends.cluster AND sent.producer_id = ends.producer_id AND sent.at_ns <= ends.at_ns
            WHERE ends.committed
            QUALIFY row_number() OVER (
                PARTITION BY sent.producer_id, ends.at_ns, {", ".join(f"sent.{name}" for name in PART.split(", "))}
                ORDER BY sent.at_ns DESC, length(exchange_id) DESC, exchange_id DESC) = 1)
        SELECT part, at_ns, committed_offset AS stored_offset, address, client_id, member_id, exchange_id,
               plain AND member_id IS NULL AND readers.reader IS NULL AS moves
        FROM commits JOIN reading_parts USING ({PART}) LEFT JOIN reading_readers AS readers USING (
            part, {PART}, address, client_id)""",
    # reader: null where the client read nothing of that partition.
    "reading_answers": f"""
        SELECT DISTINCT part, reader, at_ns, answered_offset
        FROM (SELECT {KEYS}, {CLIENT}, epoch_ns(ts) AS at_ns, committed_offset AS answered_offset
              FROM read_kafka_offset_fetches WHERE coalesce(error_code, 0) = 0 AND committed_offset IS NOT NULL)
        JOIN reading_parts USING ({PART})
        LEFT JOIN (SELECT reader, part, address, client_id FROM reading_readers) USING (part, address, client_id)""",
    # An answer tells of a commit that the capture is without, unless it repeats the last one.
    "reading_known": """
        SELECT part, at_ns, stored_offset, address, client_id, member_id, exchange_id
        FROM reading_commits WHERE NOT moves
        UNION ALL
        SELECT answers.part, answers.at_ns, answered_offset, NULL, NULL, NULL, NULL
        FROM reading_answers AS answers
        ASOF LEFT JOIN reading_commits AS last ON answers.part = last.part AND answers.at_ns >= last.at_ns
        WHERE answered_offset >= 0 AND answered_offset IS DISTINCT FROM last.stored_offset""",
}

# Who changed what, so that the group reads on elsewhere; the texts of `change` are those of the rows of admin changes.
_CHANGED = {
    "reading_asked": f"""
        SELECT coalesce(cluster_id, '') AS cluster, {CLIENT}, {_ANSWERED_NS} AS at_ns, exchange_id, resource_type,
               coalesce(resource_name, '') AS name, change
        FROM read_kafka_admin_changes
        WHERE error_code = 0 AND NOT coalesce(validate_only, false)
            AND resource_type IN ('group', 'topic')
            AND (starts_with(change, 'delete') OR starts_with(change, 'partitions='))""",
    "reading_changes": f"""
        SELECT part, at_ns, 'reset' AS change, stored_offset AS change_offset, address, client_id, exchange_id
        FROM reading_commits WHERE moves
        UNION ALL
        SELECT part, at_ns, 'group deleted', NULL, address, client_id, exchange_id
        FROM reading_asked AS asked JOIN reading_parts AS parts
            ON asked.cluster = parts.cluster AND asked.name = parts.group_id
        WHERE resource_type = 'group' AND change = 'delete'
        UNION ALL
        SELECT part, at_ns, 'offsets deleted', NULL, address, client_id, exchange_id
        FROM (SELECT *, {DELETED_TOPIC} AS topic, unnest({DELETED_PARTITIONS}) AS number
              FROM reading_asked WHERE resource_type = 'group' AND starts_with(change, 'delete offsets of ')) AS asked
        JOIN reading_parts AS parts
            ON asked.cluster = parts.cluster AND asked.name = parts.group_id AND asked.topic = parts.topic
            AND try_cast(asked.number AS BIGINT) = parts.partition
        UNION ALL
        SELECT part, at_ns, 'topic deleted', NULL, address, client_id, exchange_id
        FROM reading_asked AS asked JOIN reading_parts AS parts
            ON asked.cluster = parts.cluster AND asked.name = parts.topic
        WHERE resource_type = 'topic' AND (change = 'delete' OR starts_with(change, 'delete topic_id='))
        UNION ALL
        SELECT part, at_ns, 'partitions added', NULL, address, client_id, exchange_id
        FROM reading_asked AS asked JOIN reading_parts AS parts
            ON asked.cluster = parts.cluster AND asked.name = parts.topic
            AND try_cast(regexp_extract(change, '^partitions=([0-9]+)', 1) AS BIGINT) > parts.partition
        WHERE resource_type = 'topic'
        UNION ALL
        SELECT part, at_ns, 'records deleted', try_cast(split_part(cut, '<', 2) AS BIGINT), address, client_id,
               exchange_id
        FROM (SELECT *, unnest(string_split(substr(change, 16), ',')) AS cut
              FROM reading_asked WHERE resource_type = 'topic' AND starts_with(change, 'delete records ')) AS asked
        JOIN reading_parts AS parts
            ON asked.cluster = parts.cluster AND asked.name = parts.topic
            AND try_cast(split_part(asked.cut, '<', 1) AS BIGINT) = parts.partition""",
}

# Who committed any partition: `reading_committers`, made before the steps, of more partitions than these look at.
COMMITTERS = f"""
    SELECT coalesce(cluster_id, '') AS cluster, group_id, {CLIENT}, member_id, {_ANSWERED_NS} AS at_ns
    FROM whole_kafka_offset_commits WHERE error_code = 0"""

# What led a reader to where it began: looked for as of its first fetch, and kept where it came after the one before.
_LED = {
    "reading_asks": """
        SELECT begun.row, answers.at_ns, answers.answered_offset
        FROM reading_begun AS begun
        ASOF JOIN reading_answers AS answers ON begun.reader = answers.reader AND begun.at_ns >= answers.at_ns
        WHERE answers.at_ns > coalesce(begun.before_ns, 0)""",
    "reading_listed": f"""
        WITH lists AS (
            SELECT reader, lists.at_ns, listed, first_offset
            FROM (SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, '') AS topic, partition,
                         {CLIENT}, epoch_ns(ts) AS at_ns, "timestamp" AS listed, "offset" AS first_offset
                  FROM read_kafka_list_offsets WHERE coalesce(error_code, 0) = 0 AND "offset" >= 0) AS lists
            JOIN reading_readers USING (cluster, topic, partition, address, client_id))
        SELECT begun.row, begun.listed_ns AS at_ns, listed
        FROM (SELECT begun.row, begun.before_ns, lists.at_ns AS listed_ns, lists.listed
              FROM reading_begun AS begun
              ASOF JOIN lists
                  ON begun.reader = lists.reader AND begun.first_offset = lists.first_offset
                  AND begun.at_ns >= lists.at_ns) AS begun
        WHERE listed_ns > coalesce(before_ns, 0)""",
    "reading_refused": """
        SELECT begun.row, refused.at_ns, refused.fetch_offset
        FROM reading_begun AS begun
        ASOF JOIN (FROM reading_fetches WHERE error_code = 1) AS refused
            ON begun.reader = refused.reader AND begun.at_ns >= refused.at_ns
        WHERE refused.at_ns > coalesce(begun.before_ns, 0)""",
    "reading_members": f"""
        WITH members AS (
            SELECT member, member_id, min(at_ns) AS at_ns
            FROM (SELECT coalesce(cluster_id, '') AS cluster, group_id, {CLIENT}, member_id, {_ANSWERED_NS} AS at_ns
                  FROM read_kafka_group_events
                  WHERE error_code = 0 AND event IN ('join', 'sync', 'heartbeat', 'consumer_heartbeat')
                  UNION ALL
                  SELECT cluster, group_id, address, client_id, member_id, at_ns FROM reading_committers)
            JOIN (SELECT DISTINCT member, cluster, group_id, address, client_id FROM reading_readers)
                USING (cluster, group_id, address, client_id)
            WHERE coalesce(member_id, '') <> '' GROUP BY ALL),
        begun AS (
            SELECT row, at_ns, member
            FROM reading_begun JOIN (SELECT reader, member FROM reading_readers) USING (reader))
        SELECT begun.row, coalesce(members.member_id, later.member_id) AS member_id
        FROM begun
        ASOF LEFT JOIN members ON begun.member = members.member AND begun.at_ns >= members.at_ns
        ASOF LEFT JOIN members AS later ON begun.member = later.member AND begun.at_ns < later.at_ns""",
    "reading_places": f"""
        SELECT begun.row, min(fetches.exchange_id) AS exchange_id, min(fetches.id) AS topic_id,
               min(fetches.flow_id) AS flow_id, min(fetches.file) AS file, min(fetches.request_packet) AS request_packet
        FROM reading_begun AS begun
        JOIN (SELECT reader, at_ns, exchange_id, id, flow_id, file, request_packet
              FROM (SELECT {KEYS}, {CLIENT}, epoch_ns(ts) AS at_ns, exchange_id, topic_id AS id, flow_id, file,
                           request_packet
                    FROM read_kafka_fetch_partitions WHERE {OF_GROUPS})
              JOIN (SELECT reader, {PART}, address, client_id FROM reading_readers) USING ({PART}, address, client_id)
              ) AS fetches USING (reader, at_ns)
        GROUP BY begun.row""",
    # A connection that began after the reader's last fetch and without its handshake: a part of the capture is missing.
    # Of one in a request log whose requests nothing numbers, some may be.
    "reading_unseen": """
        SELECT DISTINCT readers.address, begun.at_ns
        FROM reading_begun AS begun JOIN reading_readers AS readers USING (reader)
        JOIN reading_places AS places USING (row)
        JOIN read_flows AS flows ON places.flow_id = flows.flow_id
        WHERE (other_flow AND NOT flows.handshake_seen AND epoch_ns(flows.ts_first) > before_ns)
            OR (flows.identified_by = 'request log' AND flows.missing_requests IS NULL)""",
    "reading_gaps": f"""
        WITH gaps AS (
            SELECT host, at_ns, max(at_ns) OVER (PARTITION BY host) AS last_ns
            FROM (SELECT DISTINCT flows.client_address AS address, epoch_ns(gaps.ts) AS at_ns
                  FROM read_expert_infos AS gaps JOIN read_flows AS flows USING (flow_id)
                  WHERE {is_lost("gaps")}
                  UNION
                  SELECT address, at_ns FROM reading_unseen)
            JOIN (SELECT DISTINCT host, address FROM reading_readers) USING (address))
        SELECT begun.row, before.at_ns, coalesce(before.last_ns, later.last_ns) AS last_ns
        FROM (SELECT row, at_ns, host
              FROM reading_begun JOIN (SELECT reader, host FROM reading_readers) USING (reader)) AS begun
        ASOF LEFT JOIN gaps AS before ON begun.host = before.host AND begun.at_ns >= before.at_ns
        ASOF LEFT JOIN gaps AS later ON begun.host = later.host AND begun.at_ns < later.at_ns""",
    # As of the answer of OffsetFetch where there is one, since that is what the reader could know.
    "reading_from": """
        SELECT begun.row, known.known, known.at_ns
        FROM (SELECT begun.row, begun.part, coalesce(asks.at_ns - 1, begun.at_ns) AS until_ns
              FROM reading_begun AS begun LEFT JOIN reading_asks AS asks USING (row)) AS begun
        ASOF JOIN (SELECT rowid AS known, part, at_ns FROM reading_known) AS known
            ON begun.part = known.part AND begun.until_ns >= known.at_ns""",
    "reading_moved": """
        SELECT begun.row, changes.*
        FROM reading_begun AS begun
        ASOF JOIN reading_changes AS changes ON begun.part = changes.part AND begun.at_ns >= changes.at_ns
        LEFT JOIN reading_from AS stored USING (row)
        WHERE changes.at_ns > coalesce(stored.at_ns, 0)""",
    # The last end of the log that anybody was told, one that was told ten seconds before at least, and whether
    # transactions write to it.
    "reading_ends": """
        SELECT cluster, topic, partition, arg_max(log_end, at_ns) AS log_end, max(at_ns) AS at_ns,
               arg_max(log_end, at_ns, 3)[3] AS earlier_end, bool_or(transactional) AS transactional
        FROM (SELECT cluster, topic, partition, arg_max(log_end, at_ns) AS log_end, max(at_ns) AS at_ns,
                     bool_or(transactional) AS transactional
              FROM (SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition,
                           epoch_ns(coalesce(ts_response, ts)) AS at_ns, high_watermark AS log_end,
                           NULL AS transactional
                    FROM read_kafka_fetch_partitions WHERE high_watermark >= 0
                    UNION ALL
                    SELECT coalesce(cluster_id, ''), coalesce(topic, topic_id, ''), partition,
                           epoch_ns(coalesce(ts_response, ts)), last_offset + 1, transactional
                    FROM read_kafka_produce_batches WHERE error_code = 0 AND last_offset >= 0) AS told
              GROUP BY cluster, topic, partition, told.at_ns // 10000000000)
        GROUP BY ALL""",
}

CAUSES = {**_STORED, **_CHANGED, **_LED}
# The steps to `reading_unseen` alone.
UNSEEN = {name: _LED[name] for name in ("reading_places", "reading_unseen")}
