"""The table `findings_history`: what any run concluded, since when, and when later packets overturned it.

In: a change that has the findings of this run, and who works. Out: the table with what is new and what stands no more.
"""

from __future__ import annotations

import time

from wirewitness.analyser.archive.aggregate.derived import Hour, change_connection, replace_changed_hours, view_of
from wirewitness.analyser.archive.aggregate.tasks import each_of
from wirewitness.analyser.archive.dataset.change import Change
from wirewitness.analyser.archive.dataset.snapshot import Snapshot
from wirewitness.analyser.archive.spark.workers import HERE, Workers
from wirewitness.analyser.tables.queries import literal

TABLE = "findings_history"
# As it is seen in Spark.
STAGE = "aggregates: history of findings"

_ROWS = """
    SELECT coalesce(now.finding_id, past.finding_id) AS finding_id, coalesce(now.code, past.code) AS code,
           coalesce(now.name, past.name) AS name, coalesce(now.severity, past.severity) AS severity,
           coalesce(now.confidence, past.confidence) AS confidence, coalesce(now.subject, past.subject) AS subject,
           coalesce(now.sentence, past.sentence) AS sentence,
           CASE WHEN now.finding_id IS NULL THEN past.ts_first ELSE now.ts_first END AS ts_first,
           CASE WHEN now.finding_id IS NULL THEN past.ts_last ELSE now.ts_last END AS ts_last,
           coalesce(past.first_run, {run}) AS first_run, coalesce(past.ts_found, {ended}) AS ts_found,
           CASE WHEN now.finding_id IS NULL THEN coalesce(past.superseded_run, {run}) END AS superseded_run,
           CASE WHEN now.finding_id IS NULL THEN coalesce(past.ts_superseded, {ended}) END AS ts_superseded
    FROM (SELECT DISTINCT ON (finding_id) * FROM findings) AS now
    FULL JOIN findings_history AS past ON now.finding_id = past.finding_id"""


def run_history(change: Change, workers: Workers = HERE) -> set[Hour]:
    """Compare the findings with those of earlier runs; the hours of first evidence that were written."""
    if not change.parts("findings") and not change.parts(TABLE):
        return set()
    (written,) = each_of(change, workers, STAGE, _compare, [time.time_ns()])
    return written


def _compare(snapshot: Snapshot, ended_ns: int) -> set[Hour]:
    with change_connection(snapshot) as con:
        view_of(con, snapshot, "findings")
        view_of(con, snapshot, TABLE)
        ended = f"make_timestamp_ns({ended_ns})::TIMESTAMPTZ_NS"
        return replace_changed_hours(con, snapshot, TABLE, _ROWS.format(run=literal(snapshot.run), ended=ended))
