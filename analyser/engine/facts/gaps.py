"""Where something of a connection is missing, as SQL: bytes that a capture lacks, requests that a log lacks, and the
starts of connections that began before the capture, or unseen. In: views of flows and expert infos. Out: `gaps`.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.chunk_files import show_made
from wirewitness.analyser.engine.facts.stage import GAPS, NOTHING, Held
from wirewitness.analyser.engine.facts.topics import views

# Of rows of `gaps`: the connection began before the capture, or unseen; else something was lost on the way.
BEGAN_UNSEEN = "reason = 'start missing'"
IS_LOSS = "reason <> 'start missing'"
# Of `expert_infos`: bytes that the capture lacks.
BYTES_MISSING = "\"group\" = 'tcp' AND code = 'gap' AND ts IS NOT NULL"
_REQUESTS_MISSING = "\"group\" = 'log' AND code = 'gap' AND ts IS NOT NULL"
# Of `flows`: one direction is not in the capture. Stream bytes of one side, and of the other no packet at all: an ACK,
# a FIN or an RST of it shows that it was captured and had nothing to say.
_UNSEEN = "ts_last_from_{0} IS NULL AND acked_by_{0} IS NULL AND coalesce('{0}' NOT IN (closed_by, reset_by), true)"
IS_ONE_SIDED = (
    "(coalesce(bytes_to_server, 0) = 0) <> (coalesce(bytes_to_client, 0) = 0) AND NOT coalesce(handshake_seen, false) "
    f"AND CASE WHEN coalesce(bytes_to_client, 0) = 0 THEN {_UNSEEN.format('server')} "
    f"ELSE {_UNSEEN.format('client')} END"
)


def losses(gaps: str = "gaps") -> str:
    """A SELECT of when something of the connections of an address was lost: `address`, `at_ns` (Unix ns).

    gaps: the name of the view.
    """
    return f"""
        SELECT DISTINCT client_address AS address, epoch_ns(ts) AS at_ns
        FROM {gaps} WHERE {IS_LOSS} AND client_address IS NOT NULL"""


# The span of a gap in a stream is `first-last`, offsets of its bytes.
_ROWS = f"""
    SELECT remarks.ts, flow_id, client_address, client_port, direction,
           CASE "group" WHEN 'tcp' THEN 'bytes missing' ELSE 'requests missing' END AS reason,
           CASE "group" WHEN 'tcp' THEN try_cast(split_part(span, '-', 2) AS BIGINT)
                                        - try_cast(split_part(span, '-', 1) AS BIGINT) + 1 END AS bytes,
           remarks.file, packet
    FROM (FROM expert_infos WHERE {BYTES_MISSING} OR {_REQUESTS_MISSING}) AS remarks JOIN flows USING (flow_id)
    UNION ALL
    SELECT ts_first, flow_id, client_address, client_port, NULL, 'start missing', NULL, file, first_packet
    FROM flows WHERE NOT handshake_seen AND duplicate_of IS NULL AND ts_first IS NOT NULL"""


def add_gaps(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the view of `gaps`, which is empty before. Call it once."""
    if views(con) >= {*GAPS.reads}:
        show_made(con, "gaps", _ROWS)
    return NOTHING
