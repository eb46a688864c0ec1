"""Who owned a partition of a group, from when to when: the steps of `kafka_ownership`, as SQL.

It is the stage that comes before all others of groups, so generations and clients of groups are made here, too
(`generations.py`, `clients.py`).

In: the tables of `generations.py`, and `go_gaps` (when bytes of which address were lost). Out: SELECTs by the
name of the temporary table that each makes, in their order, and the rows. Times are Unix ns.

- Classic groups: a SyncGroup answer begins intervals (the leader's request carries the plan of the whole group, an
  answer one member's part). They end when the member leaves or is told that it is no member any more (25, 82), or when
  another generation has begun; a session timeout shows as that.
- KIP-848, KIP-932: an answer with an assignment is that member's whole assignment, so it ends the member's intervals
  before it and begins new ones. So does leaving (epoch -1), but not for a while (epoch -2): the broker keeps a static
  member's partitions. 25, 82 and 110 end them as well.
- What a description tells begins intervals where none is known, until the next one, the group's next generation, or
  until the same member's assignment changes or it leaves. Of a streams group it tells active tasks, which may move
  unseen: nothing is sure behind it.
- Partitions of a share group belong to several members at once; else another member's assignment ends an interval, and
  of two that begin together the member with the least id has it.
- What a KIP-848 member owns is known as long as its heartbeats are all there. It is unsure from the last heartbeat
  before bytes of its client are missing (which shows up to one request late) or before it is told that it is no member
  any more (25, 110), and once the group is heard of in an epoch that the member never reaches: the partition may have
  been taken away unseen.

A partition that a member must give up (cooperative rebalancing, KIP-848) has no owner until another member gets it,
so commits while it is being revoked are nobody's fault. No interval ends because the capture has nothing more of the
member. Sources: KIP-345, KIP-429, KIP-848, KIP-932.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.gaps import losses
from wirewitness.analyser.engine.facts.stage import NOTHING, OWNERS, Held
from wirewitness.analyser.engine.facts.steps import make_tables
from wirewitness.analyser.engine.facts.topics import has_rows, views
from wirewitness.analyser.kafka.facts.clients import CLIENT_ROWS
from wirewitness.analyser.kafka.facts.generations import GENERATION_ROWS, GENERATION_STEPS
from wirewitness.analyser.kafka.facts.group_requests import EVENTS, GIVEN, KEY, time_sql

_NEVER = 2**63 - 1
_PART = f"{KEY}, topic, partition"
_WHOLE = "('consumer_heartbeat', 'share_heartbeat')"
_LOOKS = "('describe', 'share_describe', 'streams_describe')"


def _same(one: str, other: str, names: str) -> str:
    """SQL: these columns are equal."""
    return " AND ".join(f"{one}.{name} = {other}.{name}" for name in names.split(", "))


_OF_EPOCHS = f"""UNION ALL
            SELECT {_PART}, topic_id, member_id, generation, source, exchange_id, changes.at_ns, next_ns
            FROM go_given JOIN go_changes AS changes USING ({KEY}, member_id, exchange_id)
            WHERE source IN {_WHOLE} AND partition IS NOT NULL AND topic IS NOT NULL"""
_DESCRIBED = " UNION ALL BY NAME FROM go_described"
OWNERSHIP_STEPS = {
    # When memberships ended, by what the wire says.
    "go_ends": f"""
        SELECT {KEY}, member_id, at_ns, 'left' AS how FROM go_events WHERE leaves AND error_code = 0
        UNION ALL
        SELECT {KEY}, member_id, done_ns, CASE error_code WHEN 82 THEN 'fenced' ELSE 'removed' END
        FROM go_events WHERE NOT leaves AND answered AND error_code IN (25, 82, 110)""",
    "go_changes": f"""
        SELECT *, lead(at_ns) OVER (PARTITION BY {KEY}, member_id ORDER BY at_ns, exchange_id) AS next_ns
        FROM (SELECT {KEY}, member_id, exchange_id, min(at_ns) AS at_ns FROM go_given WHERE source IN {_WHOLE}
              GROUP BY ALL)""",
    "go_beats": f"""
        SELECT {KEY}, member_id, address, generation, at_ns,
               lag(at_ns, 1, at_ns) OVER (PARTITION BY {KEY}, member_id ORDER BY at_ns) AS before_ns
        FROM (SELECT * REPLACE (done_ns AS at_ns) FROM go_events
              WHERE event = 'consumer_heartbeat' AND error_code = 0 AND member_id IS NOT NULL)""",
    "go_doubts": f"""
        SELECT DISTINCT beats.cluster, beats.group_id, beats.member_id, beats.before_ns AS at_ns
        FROM (SELECT members.*, gaps.at_ns
              FROM (SELECT DISTINCT {KEY}, member_id, address FROM go_beats) AS members
              JOIN go_gaps AS gaps ON members.address = gaps.address) AS lost
        ASOF JOIN go_beats AS beats ON {_same("lost", "beats", f"{KEY}, member_id")} AND lost.at_ns >= beats.at_ns
        UNION
        SELECT DISTINCT beats.cluster, beats.group_id, beats.member_id, beats.at_ns
        FROM (SELECT {KEY}, member_id, done_ns AS at_ns FROM go_events
              WHERE event = 'consumer_heartbeat' AND error_code IN (25, 110)) AS told
        ASOF JOIN go_beats AS beats ON {_same("told", "beats", f"{KEY}, member_id")} AND told.at_ns >= beats.at_ns
        UNION
        SELECT members.cluster, members.group_id, members.member_id, later.began_ns
        FROM (SELECT {KEY}, member_id, max(generation) AS newest FROM go_beats GROUP BY ALL) AS members
        ASOF JOIN (SELECT {KEY}, generation, min(began_ns) AS began_ns FROM go_generations GROUP BY ALL) AS later
            ON {_same("members", "later", KEY)} AND newest < later.generation""",
    # What a response gave directly: by a plan, or a whole assignment.
    "go_spans": f"""
        SELECT spans.* EXCLUDE (next_ns), least(next_ns, ends.at_ns) AS ended_ns,
               CASE WHEN coalesce(ends.at_ns < next_ns, ends.at_ns IS NOT NULL) THEN how
                    WHEN next_ns IS NULL THEN NULL WHEN source LIKE 'sync%' THEN 'generation' ELSE 'revoked' END
                   AS ended_by
        FROM (
            SELECT {_PART}, topic_id, member_id, generation, source, exchange_id, began_ns, ended_ns AS next_ns
            FROM (
                SELECT given.cluster, given.group_id, topic, partition, max(topic_id) AS topic_id, member_id,
                       generation, coalesce(incarnation, 0) AS incarnation, min(at_ns) AS began_ns,
                       arg_min(source, (at_ns, source = 'sync_answer')) AS source,
                       arg_min(exchange_id, (at_ns, source = 'sync_answer', exchange_id)) AS exchange_id
                FROM go_given AS given ASOF LEFT JOIN go_incarnations AS lives
                    ON {_same("given", "lives", KEY)} AND at_ns >= since_ns
                WHERE source IN ('sync_leader', 'sync_answer') AND partition IS NOT NULL AND topic IS NOT NULL
                GROUP BY ALL)
            LEFT JOIN (SELECT {KEY}, incarnation, generation, ended_ns FROM go_generations)
                USING ({KEY}, incarnation, generation)
            {_OF_EPOCHS}) AS spans
        ASOF LEFT JOIN go_ends AS ends ON {_same("spans", "ends", f"{KEY}, member_id")} AND began_ns < ends.at_ns""",
    # Descriptions, where they tell what was not known.
    "go_described": f"""
        SELECT {_PART}, max(topic_id) AS topic_id, member_id, arg_min(generation, began_ns) AS generation,
               arg_min(source, (began_ns, exchange_id)) AS source,
               arg_min(exchange_id, (began_ns, exchange_id)) AS exchange_id,
               min(began_ns) AS began_ns, arg_max_null(ended_ns, began_ns) AS ended_ns,
               arg_max_null(CASE WHEN ended_ns IS NULL THEN NULL WHEN ended_ns = look_ns THEN 'described'
                                 WHEN ended_ns = left_ns THEN how WHEN ended_ns = change_ns THEN 'revoked'
                                 ELSE 'generation' END, began_ns) AS ended_by
        FROM (
            SELECT *, sum(begins::INTEGER) OVER (PARTITION BY {_PART}, member_id ORDER BY began_ns, exchange_id) AS run
            FROM (
                SELECT *, lag(ended_ns) OVER (PARTITION BY {_PART}, member_id ORDER BY began_ns, exchange_id)
                           IS DISTINCT FROM began_ns AS begins
                FROM (
                    SELECT told.*, told.at_ns AS began_ns, look_ns, changes.at_ns AS change_ns,
                           ends.at_ns AS left_ns, how,
                           least(look_ns, later.began_ns, changes.at_ns, ends.at_ns) AS ended_ns
                    FROM (SELECT * FROM go_given WHERE source IN {_LOOKS} AND partition IS NOT NULL
                              AND topic IS NOT NULL) AS told
                    JOIN (SELECT {KEY}, exchange_id, lead(at_ns) OVER (
                                     PARTITION BY {KEY} ORDER BY at_ns, exchange_id) AS look_ns
                          FROM (SELECT DISTINCT {KEY}, exchange_id, at_ns FROM go_given WHERE source IN {_LOOKS}))
                        USING ({KEY}, exchange_id)
                    ASOF LEFT JOIN (SELECT {KEY}, min(heard_ns) AS began_ns FROM go_told
                                    WHERE turns AND group_protocol = 'classic' GROUP BY {KEY}, generation) AS later
                        ON {_same("told", "later", KEY)} AND told.at_ns < later.began_ns
                    ASOF LEFT JOIN go_changes AS changes
                        ON {_same("told", "changes", f"{KEY}, member_id")} AND told.at_ns < changes.at_ns
                    ASOF LEFT JOIN go_ends AS ends
                        ON {_same("told", "ends", f"{KEY}, member_id")} AND told.at_ns < ends.at_ns
                    ASOF LEFT JOIN go_spans AS known
                        ON {_same("told", "known", f"{_PART}, member_id")} AND told.at_ns >= known.began_ns
                    WHERE coalesce(known.ended_ns <= told.at_ns, known.began_ns IS NULL))))
        GROUP BY {_PART}, member_id, run""",
    "go_owned": f"""
        SELECT * EXCLUDE (next_ns, next_id) REPLACE (least(ended_ns, next_ns) AS ended_ns,
               CASE WHEN next_ns <= coalesce(ended_ns, {_NEVER}) THEN
                        CASE WHEN next_id = member_id THEN 'renewed' ELSE 'reassigned' END
                    ELSE ended_by END AS ended_by)
        FROM (
            SELECT *, lead(began_ns) OVER own AS next_ns, lead(member_id) OVER own AS next_id
            FROM (SELECT *, source LIKE 'share%' AS shared
                  FROM (FROM go_spans{_DESCRIBED}))
            WINDOW own AS (PARTITION BY {_PART}, CASE WHEN shared THEN member_id END
                           ORDER BY began_ns, generation, member_id DESC))
        WHERE coalesce(least(ended_ns, next_ns) > began_ns, true)""",
}

_UNSURE = f"""
    ASOF LEFT JOIN (SELECT *, 'consumer_heartbeat' AS of FROM go_doubts UNION ALL SELECT *, 'describe' FROM go_doubts)
        AS unsure ON {_same("owned", "unsure", f"{KEY}, member_id")} AND owned.source = unsure.of
        AND began_ns <= unsure.at_ns
    ASOF LEFT JOIN (SELECT DISTINCT {KEY}, ended_ns AS newer_ns FROM go_generations WHERE ended_ns IS NOT NULL) AS newer
        ON {_same("owned", "newer", KEY)} AND began_ns < newer_ns"""
# A description of a classic group does not say of which generation it is: what is heard of a later one, if only by a
# commit, may come of a rebalance that the capture lacks.
_DOUBT_NS = "least(unsure.at_ns, CASE WHEN source = 'describe' AND generation IS NULL THEN newer_ns END)"
_UNSURE_NS = f"""CASE WHEN source = 'streams_describe' THEN began_ns
               WHEN {_DOUBT_NS} < coalesce(ended_ns, {_NEVER}) THEN {_DOUBT_NS} END"""
OWNERSHIP_ROWS = f"""
    SELECT nullif(owned.cluster, '') AS cluster_id, owned.group_id, topic, topic_id, partition, owned.member_id,
           client_id, address AS client_address, generation, {time_sql("began_ns")} AS ts,
           {time_sql(_UNSURE_NS)} AS ts_unsure,
           {time_sql("ended_ns")} AS ts_end, ended_by, shared, source, exchange_id
    FROM go_owned AS owned
    {_UNSURE}
    LEFT JOIN (SELECT {KEY}, member_id, arg_max(client_id, at_ns) AS client_id, arg_max(address, at_ns) AS address
               FROM go_events WHERE event <> 'leave' GROUP BY ALL) AS members
        ON {_same("owned", "members", f"{KEY}, member_id")}"""

# What plans of classic groups need: to plan the rest takes longer than all else on a small capture.
_PLANS_ONLY = {
    "go_ends": OWNERSHIP_STEPS["go_ends"],
    "go_spans": OWNERSHIP_STEPS["go_spans"].replace(_OF_EPOCHS, ""),
    "go_owned": OWNERSHIP_STEPS["go_owned"].replace(_DESCRIBED, ""),
}
_ROWS_OF_PLANS = OWNERSHIP_ROWS.replace(_UNSURE, "").replace(_UNSURE_NS, "NULL::BIGINT")

_OF_GROUPS = ("kafka_group_events", "kafka_assignments", "kafka_offset_commits")
_BASE = {"go_events": EVENTS, "go_given": GIVEN}


def add_owners(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the views `kafka_generations`, `kafka_ownership` and `kafka_clients`. Call it once.

    Nothing happens where there are no requests of groups.
    """
    there = views(con)
    if not there >= {*OWNERS.reads} or not any(has_rows(con, table) for table in _OF_GROUPS):
        return NOTHING
    steps = {**_BASE, **GENERATION_STEPS}
    rows = {"kafka_clients": CLIENT_ROWS, "kafka_generations": GENERATION_ROWS}
    if has_rows(con, "(FROM kafka_assignments WHERE source NOT IN ('sync_leader', 'sync_answer'))"):
        steps |= {"go_gaps": losses(), **OWNERSHIP_STEPS}
        rows["kafka_ownership"] = OWNERSHIP_ROWS
    elif has_rows(con, "kafka_assignments"):
        steps |= _PLANS_ONLY
        rows["kafka_ownership"] = _ROWS_OF_PLANS
    make_tables(con, steps, {name: query for name, query in rows.items() if name in there})
    return NOTHING
