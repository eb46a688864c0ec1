"""The context of Kafka's groups: members and rebalances.

In: a connection with views of the Kafka tables and of `flows`, `gaps` and `expert_infos`. Out: the views
`kafka_members` and `kafka_rebalances`. All of it is SQL (`group_members.py`, `group_rebalances.py`): memory is DuckDB's
limit, and it may spill. Sources: KIP-62, KIP-345 (static members), KIP-394 (member ids), KIP-429 (cooperative),
KIP-848; Kafka's GroupMetadataManager for when a JoinGroup is answered.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.stage import GROUPS, NOTHING, Held
from wirewitness.analyser.engine.facts.steps import make_tables
from wirewitness.analyser.engine.facts.topics import views
from wirewitness.analyser.kafka.facts.group_members import MEMBER, MEMBER_ROWS, MEMBER_STEPS
from wirewitness.analyser.kafka.facts.group_rebalances import REBALANCE_ROWS, REBALANCE_STEPS
from wirewitness.analyser.kafka.facts.group_requests import SECOND_NS

# Which side was idle while a member of a group sent nothing, by TCP: the steps of `kafka_members.idle_side`, as SQL.
#
# In: `gm_ended` (`group_members.py`), views `exchanges`, `expert_infos`, `flows`. Out: `gm_sides`, by member. Times are
# Unix ns.
#
# - `network`: the same bytes of a connection of its address were sent again `SENT_AGAIN` times or more meanwhile, so
#   that nobody ACKed them in between (RFC 9293, 3.8.1; a timer doubles from each to the next, RFC 6298, 5.5).
# - `process`: the last thing on its connections is a response that came meanwhile. It was not sent again although there
#   was time for it, so its TCP ACKed it (RFC 6298: after a second by default); no request followed it.
# - Else it is not known, as where TCP of one side is missing from the capture.

# Loss at random hits one segment twice now and then, hardly ever three times in more than a second.
SENT_AGAIN = 3
# Whoever comes back may be heard so long before the group hears of it; and an answer needs as long to be sent again.
_EDGE_NS = 2 * SECOND_NS
# A silence of two thirds of the session timeout is looked at, as KAF111 does.
_SUSPECT = "ended IN ('expired', 'removed') OR silence >= 660000 * coalesce(nullif(session_timeout_ms, 0), 45000)"

SIDE_STEPS = {
    "gm_quiet": f"""
        SELECT {MEMBER}, address, client_id,
               CASE WHEN ended = 'expired' THEN last_ns ELSE silent_ns END AS since_ns,
               CASE WHEN ended = 'expired' THEN gone_ns ELSE silent_ns + silence END AS until_ns
        FROM gm_ended WHERE address IS NOT NULL AND ({_SUSPECT})""",
    "gm_again": """
        SELECT flows.client_address AS address, flow_id, remarks.direction, span, epoch_ns(remarks.ts) AS at_ns
        FROM expert_infos AS remarks JOIN flows USING (flow_id)
        WHERE remarks.code = 'retransmission' AND remarks.ts IS NOT NULL
            AND flows.client_address IN (SELECT address FROM gm_quiet)""",
    # Connections of which both directions are there.
    "gm_spoken": """
        SELECT exchanges.client_address AS address, exchanges.client_id, epoch_ns(ts) AS at_ns,
               epoch_ns(ts_response) AS answer_ns
        FROM exchanges JOIN flows USING (flow_id)
        WHERE (exchanges.client_address, exchanges.client_id) IN (SELECT (address, client_id) FROM gm_quiet)
            AND ts IS NOT NULL AND acked_by_client IS NOT NULL""",
    # The same bytes once more than the network loses at random: the first and the last of so many times.
    "gm_unheard": f"""
        SELECT address, first_ns, again_ns
        FROM (SELECT address, list_sort(list(at_ns)) AS times, times[1] AS first_ns, times[{SENT_AGAIN}] AS again_ns
              FROM gm_again GROUP BY address, flow_id, direction, span HAVING count(*) >= {SENT_AGAIN})
        WHERE again_ns - first_ns >= {SECOND_NS}""",
    # The last of each before the silence ended: joined in the order of time, however many there are.
    "gm_sides": f"""
        SELECT {MEMBER}, CASE
                WHEN first_ns > since_ns THEN 'network'
                WHEN coalesce(again.at_ns <= since_ns, true) AND answered.answer_ns > since_ns
                    AND answered.answer_ns > asked.at_ns
                    THEN 'process' END AS side
        FROM gm_quiet AS quiet
        ASOF LEFT JOIN gm_unheard AS unheard ON quiet.address = unheard.address AND until_ns > unheard.again_ns
        ASOF LEFT JOIN gm_again AS again ON quiet.address = again.address AND until_ns > again.at_ns
        ASOF LEFT JOIN gm_spoken AS asked
            ON quiet.address = asked.address AND quiet.client_id = asked.client_id
            AND until_ns - {_EDGE_NS} >= asked.at_ns
        ASOF LEFT JOIN (FROM gm_spoken WHERE answer_ns IS NOT NULL) AS answered
            ON quiet.address = answered.address AND quiet.client_id = answered.client_id
            AND until_ns - {_EDGE_NS} >= answered.answer_ns""",
}


_STEPS = {**MEMBER_STEPS, **SIDE_STEPS, **REBALANCE_STEPS}
_ROWS = {"kafka_members": MEMBER_ROWS, "kafka_rebalances": REBALANCE_ROWS}


def add_members_and_rebalances(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make both views; nothing happens where there are no group requests. Call it once."""
    there = views(con)
    if not there >= {*GROUPS.reads}:
        return NOTHING
    if not con.execute("SELECT EXISTS (FROM kafka_group_events WHERE event <> 'describe')").fetchall()[0][0]:
        return NOTHING
    make_tables(con, _STEPS, {name: query for name, query in _ROWS.items() if name in there})
    return NOTHING
