"""Findings of captures whose packets do not stand in the order in which they were sent: no accusation rests on that.

Two capture points whose clocks are apart, merged, and queues of a capturing machine mix packets up by as much. It shows
where a response stands before its request, and where bytes come after their ACK. What is concluded there from order or
from waiting may be the capture's doing.

In: findings, and a connection with views of `exchanges` and `expert_infos`. Out: the same findings, some of them less
sure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import duckdb

from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.tcp.streams import CAPTURED_LATE

# Tables that tell.
CLOCK_TABLES = ("exchanges", "expert_infos")
# What these questions find does not depend on which of two packets was first.
_WITHOUT_ORDER = frozenset({"capture", "refused", "repeated", "growing"})
# So much out of order is no matter of queues that overtake each other.
_LEAST_MS = 10.0
# A step of a clock mixes up what spans it alone, which is less than this share of a capture.
_LEAST_SHARE = 0.01
_MIXED_UP = f"""
    WITH asked AS (SELECT request_file AS file, count(*) AS exchanges,
                          count(*) FILTER (latency_ms < -{_LEAST_MS}) AS turned FROM exchanges GROUP BY ALL),
         late AS (SELECT file, count(*) AS late FROM expert_infos WHERE code = '{CAPTURED_LATE}' GROUP BY ALL)
    SELECT file FROM asked FULL JOIN late USING (file)
    WHERE coalesce(turned, 0) + coalesce(late, 0) > {_LEAST_SHARE} * coalesce(exchanges, 0)"""
_DOUBT = " Packets of the capture are out of order, as from clocks that are apart: this may come of that."


def mixed_up(con: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """The files whose packets are out of order; none where the tables are not there."""
    try:
        return frozenset(file for (file,) in con.execute(_MIXED_UP).fetchall())
    except duckdb.CatalogException:
        return frozenset()


def doubted(
    findings: Sequence[Finding], questions: Mapping[str, str], files: Callable[[], frozenset[str]]
) -> Sequence[Finding]:
    """Those that rest on order, proved by such a file, as info of low confidence. questions: of each code. files: asked
    where any finding rests on order."""
    asked = [one for one in findings if one.severity != "info" and questions[one.code] not in _WITHOUT_ORDER]
    mixed = files() if asked else frozenset()
    if not mixed:
        return findings
    doubtful = {id(one) for one in asked if any(proof.file in mixed for proof in one.evidence)}
    return [_less_sure(one) if id(one) in doubtful else one for one in findings]


def _less_sure(finding: Finding) -> Finding:
    return replace(finding, severity="info", confidence="low", sentence=finding.sentence + _DOUBT)
