"""What stands beside some commits: who went back, who takes turns, what failed before, what is ahead of a repeat.

In: rows of `kafka_committed` in numbers (`committed.py`), Kafka's tables. Out: one SELECT of the columns that few rows
have; `analyser/tables/kafka_offsets.py` says what each means. Most captures have hardly any such commit: windows over
fetches and commits are made for the clients and partitions of those alone.
"""

from __future__ import annotations

GROUP = "cluster, group_id, topic, partition"
ANSWERED_NS = "epoch_ns(coalesce(ts_response, ts))"
OWN_CLIENT = "coalesce(client_address, '') AS address, coalesce(client_id, '') AS client"
CONSUMERS = "FROM kafka_fetch_partitions WHERE coalesce(replica_id, -1) < 0"
IS_COMMIT = "kind IN ('commit', 'transaction')"
_LOG = "cluster, topic, partition"
_CLIENT = f"{_LOG}, address, client"
_READING = f"""
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition, {OWN_CLIENT},
           epoch_ns(ts) AS at_ns, fetch_offset AS fetched {CONSUMERS} AND fetch_offset >= 0
    UNION ALL BY NAME
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, '') AS topic, partition, {OWN_CLIENT},
           epoch_ns(ts) AS at_ns, "offset" AS told FROM kafka_list_offsets WHERE "offset" >= 0
    UNION ALL BY NAME
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition, {OWN_CLIENT},
           epoch_ns(ts) AS at_ns, committed_offset AS told FROM kafka_offset_fetches WHERE committed_offset >= 0"""
# One whose answer the capture lost may have been accepted.
_FAILED = f"""
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id,
           coalesce(topic, topic_id, '') AS topic, partition, {OWN_CLIENT}, committed_offset, {ANSWERED_NS} AS at_ns,
           epoch_ns(ts) AS sent_ns, exchange_id, request_packet, error_code
    FROM kafka_offset_commits WHERE committed_offset >= 0 AND coalesce(error_code <> 0, client_gap_ts IS NULL)"""
SOON_S = 5
# So many committers of a partition are looked at that repeat offsets: a member gets a new id with every restart.
_MOST_STUCK = 16
_STEPS = 1 << 40
# Half of the evidence of a finding.
_SHOWN = 12
_BEFORE = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"


def _ahead(offset: str) -> str:
    """More than one further than a commit, or one while the log goes on: a log may end with a control record."""
    return f"({offset} > committed_offset + 1 OR ({offset} = committed_offset + 1 AND log_end_offset > {offset}))"


def neighbours(kept: str) -> str:
    """A SELECT of `row` and the columns that few rows of `kafka_committed` have. kept: the rows of all changes."""
    return f"""
    WITH named AS (
        SELECT row, part, committer, step, committed_offset, below_commit, below_highest, since_ns, own_commits,
               furthest_fetch, log_end_offset, generation, member_id <> '' AS is_member, request_packet,
               coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id, coalesce(topic, '') AS topic,
               partition, {OWN_CLIENT}, epoch_ns(ts) AS at_ns, epoch_ns(ts_sent) AS sent_ns
        FROM {kept} WHERE {IS_COMMIT}),
    -- Windows are slow over texts: a client of a log is a number.
    clients AS MATERIALIZED (SELECT *, row_number() OVER () AS reader FROM (SELECT DISTINCT {_CLIENT} FROM named)),
    base AS (SELECT named.* EXCLUDE (address, client), reader FROM named JOIN clients USING ({_CLIENT})),
    reading AS NOT MATERIALIZED (
        SELECT reader, at_ns, fetched, told FROM ({_READING}) JOIN clients USING ({_CLIENT})),
    failed AS (SELECT failed.*, reader FROM ({_FAILED}) AS failed JOIN clients USING ({_CLIENT})),
    -- The same offset of the same client, which failed just before it was accepted.
    again AS (
        SELECT * FROM (
            SELECT *, lag(row IS NULL) OVER same AS is_again, lag(sent_ns) OVER same AS failed_ns,
                   lag(error_code) OVER same AS failed_error_code, lag(exchange_id) OVER same AS failed_exchange_id,
                   lag(request_packet) OVER same AS failed_request_packet
            FROM (FROM failed UNION ALL BY NAME
                  SELECT row, part, reader, group_id, committed_offset, at_ns, sent_ns, request_packet
                  FROM base SEMI JOIN failed USING (reader, group_id, committed_offset))
            WINDOW same AS (PARTITION BY reader, group_id, committed_offset
                            ORDER BY at_ns, sent_ns, request_packet))
        WHERE row IS NOT NULL AND is_again),
    heights AS (
        SELECT *, max(committed_offset) OVER (PARTITION BY part ORDER BY step {_BEFORE}) AS highest
        FROM base SEMI JOIN again USING (part)),
    peaks AS (
        SELECT row, highest,
               last_value(CASE WHEN committed_offset >= coalesce(highest, 0) THEN sent_ns END IGNORE NULLS)
                   OVER before AS highest_ns,
               last_value(CASE WHEN committed_offset >= coalesce(highest, 0) THEN row END IGNORE NULLS)
                   OVER before AS highest_row
        FROM heights WINDOW before AS (PARTITION BY part ORDER BY step {_BEFORE})),
    restored AS (
        SELECT again.*, highest_ns, highest_row FROM again JOIN peaks USING (row) WHERE highest > committed_offset),
    soon AS (
        SELECT row, max(committed_offset) OVER (
            PARTITION BY part, reader
            ORDER BY at_ns RANGE BETWEEN CURRENT ROW AND {SOON_S * 10**9} FOLLOWING) AS own_highest_soon
        FROM base SEMI JOIN restored USING (part, reader)),
    -- Offsets that a committer commits more than five times, while something is further. Of a partition those of few.
    values_again AS (
        SELECT part, committer, committed_offset, count(*) AS same_commits FROM base GROUP BY ALL
        HAVING count(*) > 5 AND (max(below_highest) > 0 OR max(furthest_fetch) > committed_offset)),
    stuck AS (
        SELECT part, committer AS who FROM (
            SELECT part, committer, sum(same_commits) AS commits FROM values_again GROUP BY part, committer)
        QUALIFY row_number() OVER (PARTITION BY part ORDER BY commits DESC, committer) <= {_MOST_STUCK}),
    fetches AS (
        SELECT reader, at_ns, max(fetched) AS fetched FROM reading
        SEMI JOIN (FROM base SEMI JOIN values_again USING (part, committer)) USING (reader)
        WHERE fetched IS NOT NULL GROUP BY reader, at_ns),
    same AS (
        SELECT *, lag(step) OVER one AS step_1, lag(sent_ns) OVER one AS sent_ns_1, lag(fetched) OVER one AS fetched_1,
               first_value(step) OVER one AS step_0, row_number() OVER one IN (1, same_commits) AS is_edge
        FROM (SELECT row, part, committer, step, committed_offset, log_end_offset, sent_ns, same_commits,
                     commits.reader, fetches.fetched
              FROM (FROM base JOIN values_again USING (part, committer, committed_offset)) AS commits
              ASOF LEFT JOIN fetches ON commits.reader = fetches.reader AND commits.sent_ns >= fetches.at_ns)
        WINDOW one AS (PARTITION BY part, committer, committed_offset ORDER BY step)),
    -- The highest commit of its own since the last time, and of others since the first: offset and step in one number.
    heights_since AS (
        SELECT row, max(CASE WHEN is_own THEN height END) OVER last AS own,
               max(CASE WHEN NOT is_own THEN height END) OVER first AS others
        FROM (SELECT base.row, base.part, who, base.step, base.committer = who AS is_own,
                     base.committed_offset::HUGEINT * {_STEPS} + base.step AS height,
                     greatest(base.step - coalesce(step_1, base.step - 1) - 1, 1) AS since_last,
                     greatest(base.step - coalesce(step_0, base.step - 1) - 1, 1) AS since_first
              FROM base JOIN stuck USING (part) LEFT JOIN same ON base.row = same.row AND same.committer = who)
        WINDOW last AS (PARTITION BY part, who ORDER BY step RANGE BETWEEN since_last PRECEDING AND 1 PRECEDING),
            first AS (PARTITION BY part, who ORDER BY step RANGE BETWEEN since_first PRECEDING AND 1 PRECEDING)
        QUALIFY is_own),
    returned AS (
        SELECT same.*, CASE WHEN {_ahead(f"others // {_STEPS}")} THEN others WHEN {_ahead(f"own // {_STEPS}")} THEN own
                       END AS height,
               CASE WHEN fetched > fetched_1 AND {_ahead("fetched")} THEN fetched END AS fetched_ahead
        FROM same JOIN heights_since USING (row) WHERE step_1 IS NOT NULL),
    overtaken AS (
        SELECT returned.*, (height % {_STEPS})::BIGINT AS ahead_step, ahead.row AS ahead_row,
               coalesce(height // {_STEPS}, fetched_ahead)::BIGINT AS ahead_offset,
               ahead.committer = returned.committer OR ahead.reader = returned.reader AS by_itself
        FROM returned LEFT JOIN base AS ahead ON ahead.part = returned.part AND ahead.step = height % {_STEPS}
        WHERE height IS NOT NULL OR fetched_ahead IS NOT NULL),
    -- Between two times, both left out.
    asks AS (
        SELECT *, least(at_ns::HUGEINT - since_ns - 1, {2**63 - 1})::BIGINT AS span FROM (
            SELECT row, 'before' AS ask, reader, since_ns, sent_ns AS at_ns, committed_offset AS stored
            FROM base WHERE below_commit > 0
            UNION ALL SELECT row, 'highest', reader, highest_ns, sent_ns, committed_offset FROM restored
            UNION ALL SELECT row, 'same', reader, sent_ns_1, sent_ns, committed_offset
            FROM overtaken WHERE by_itself)
        WHERE at_ns::HUGEINT - since_ns > 1),
    looked AS (
        SELECT row, ask, stored, min(fetched) OVER own AS fetched, min(told) OVER own AS told,
               count(told) OVER (PARTITION BY reader, coalesce(told, stored)
                                 ORDER BY at_ns RANGE BETWEEN coalesce(span, 1) PRECEDING AND 1 PRECEDING) AS same
        FROM (FROM reading SEMI JOIN asks USING (reader) UNION ALL BY NAME FROM asks)
        WINDOW own AS (PARTITION BY reader
                       ORDER BY at_ns RANGE BETWEEN coalesce(span, 1) PRECEDING AND 1 PRECEDING)),
    turned AS (
        SELECT row, ask, least(stored, coalesce(fetched, stored)) AS read_from FROM looked
        WHERE row IS NOT NULL AND (coalesce(fetched, told) <= stored OR same > 0)),
    -- Of each offset the first and the last returns, and the one with the furthest ahead: a finding shows no more.
    repeats AS (
        SELECT *, row_number() OVER own AS nth, count(*) OVER one AS same_returns,
               count(ahead_row) OVER one AS same_overtaken,
               row_number() OVER (one ORDER BY ahead_offset DESC, step) AS rank
        FROM overtaken ANTI JOIN (FROM turned WHERE ask = 'same') USING (row)
        WINDOW one AS (PARTITION BY part, committer, committed_offset), own AS (one ORDER BY step)
        QUALIFY nth <= {_SHOWN} OR nth > same_returns - {_SHOWN} OR rank = 1),
    beyond AS (FROM base WHERE committed_offset > log_end_offset),
    ends AS (
        SELECT {_LOG}, at_ns, min(log_end) AS low, max(log_end) AS high FROM (
            SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition,
                   epoch_ns(ts) AS at_ns, high_watermark AS log_end
            FROM kafka_fetch_partitions WHERE high_watermark >= 0) SEMI JOIN beyond USING ({_LOG})
        GROUP BY ALL),
    -- A client without member id that commits once resets an offset by hand.
    regular AS (FROM base WHERE own_commits > 1 OR coalesce(is_member, false)),
    shared AS (
        FROM regular SEMI JOIN (
            SELECT part FROM regular GROUP BY part HAVING min(committer) < max(committer)) USING (part)),
    turns AS (
        SELECT row, part, near OR coalesce(lead(near) OVER own, false) AS near_other, own_generation_before, own_gap
        FROM (SELECT row, part, step, coalesce(committer <> lag(committer) OVER own, false) AS near,
                     lag(generation) OVER one AS own_generation_before,
                     sent_ns::DOUBLE - lag(sent_ns) OVER one AS own_gap
              FROM shared WINDOW own AS (PARTITION BY part ORDER BY step),
                  one AS (PARTITION BY part, committer ORDER BY step))
        WINDOW own AS (PARTITION BY part ORDER BY step)),
    gaps AS (SELECT part, median(own_gap) / 1000000 AS usual_gap_ms FROM turns GROUP BY part),
    near AS (
        SELECT row, kind = 'below 0' OR coalesce(lag(kind) OVER own = 'below 0', false)
                    OR coalesce(lead(kind) OVER own = 'below 0', false) AS near_below_0
        FROM {kept} SEMI JOIN (SELECT part FROM {kept} WHERE kind = 'below 0') USING (part)
        WHERE {IS_COMMIT} OR kind = 'below 0' WINDOW own AS (PARTITION BY part ORDER BY step)),
    -- Times may be a second wrong from connection to connection (a request log's, cut to seconds).
    after AS (
        SELECT ends.row,
               CASE WHEN later.at_ns >= ends.at_ns THEN greatest(ends.low, later.high) ELSE ends.low END AS next_log_end
        FROM (SELECT beyond.row, beyond.cluster, beyond.topic, beyond.partition, beyond.at_ns + 1000000000 AS until_ns,
                     ends.at_ns, ends.low
              FROM beyond ASOF JOIN ends ON beyond.cluster = ends.cluster AND beyond.topic = ends.topic
                  AND beyond.partition = ends.partition AND beyond.at_ns <= ends.at_ns) AS ends
        ASOF LEFT JOIN ends AS later ON ends.cluster = later.cluster AND ends.topic = later.topic
            AND ends.partition = later.partition AND ends.until_ns >= later.at_ns)
    SELECT row, any_value(read_from) AS read_from, any_value(next_log_end) AS next_log_end,
           make_timestamp_ns(any_value(failed_ns))::TIMESTAMPTZ_NS AS ts_failed,
           any_value(failed_error_code) AS failed_error_code, any_value(failed_exchange_id) AS failed_exchange_id,
           any_value(failed_request_packet) AS failed_request_packet,
           any_value(own_highest_soon) AS own_highest_soon, bool_or(read_since) AS read_since_highest,
           bool_or(is_over) AS sent_again_over, bool_or(near_below_0) AS near_below_0,
           bool_or(near_other) AS near_other, any_value(own_generation_before) AS own_generation_before,
           any_value(usual_gap_ms) AS usual_gap_ms, any_value(ahead_step) AS ahead_step,
           any_value(ahead_offset) AS ahead_offset, any_value(same_commits) AS same_commits,
           any_value(same_returns) AS same_returns, any_value(same_overtaken) AS same_overtaken,
           bool_or(is_repeat) AS near_repeat
    FROM (SELECT row, read_from FROM turned WHERE ask = 'before'
          UNION ALL BY NAME SELECT row, true AS read_since FROM turned WHERE ask = 'highest'
          UNION ALL BY NAME FROM after
          UNION ALL BY NAME FROM near WHERE near_below_0
          UNION ALL BY NAME
          SELECT row, near_other, own_generation_before, usual_gap_ms FROM turns JOIN gaps USING (part)
          WHERE near_other
          UNION ALL BY NAME
          SELECT row, ahead_step, ahead_offset, same_commits, same_returns, same_overtaken, true AS is_repeat
          FROM repeats
          UNION ALL BY NAME SELECT ahead_row AS row, true AS is_repeat FROM repeats WHERE ahead_row IS NOT NULL
          UNION ALL BY NAME
          SELECT row, true AS is_repeat FROM same SEMI JOIN repeats USING (part, committer, committed_offset)
          WHERE is_edge
          UNION ALL BY NAME SELECT highest_row AS row, true AS is_over FROM restored
          UNION ALL BY NAME
          SELECT row, failed_ns, failed_error_code, failed_exchange_id, failed_request_packet, own_highest_soon
          FROM restored JOIN soon USING (row))
    GROUP BY row"""
