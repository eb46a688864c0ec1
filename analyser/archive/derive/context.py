"""The context of a whole dataset: what rows know from other rows, over months.

In: a change that has all base rows (from whatever connection and run). Out: the same change in which commits, fetches
and publishes have their context columns, and with the tables that are made of others. It is done by the stages of
`analyser/context`, as for captures; DuckDB keeps to its memory limit and spills. Of Kafka, only hours are read that can
come out otherwise than in the last run (`kafka_context.py`).
"""

from __future__ import annotations

from analyser.archive.dataset.change import Change
from analyser.archive.derive import kafka_context
from analyser.archive.derive.derived import Hour, change_connection, replace_changed_hours, rows_of, view_of
from analyser.archive.derive.hour_summaries import stamp_again
from analyser.context.stage import OFFSETS
from analyser.context.stages import STAGES, Stage
from analyser.registry.queries import quoted


def run_context(change: Change) -> dict[str, set[Hour]]:
    """Run all stages; table -> hours that were written anew. Once for each change, when all base rows are added.

    Context columns that rows have from an earlier run count for nothing: they are made anew where they can differ.
    """
    written: dict[str, set[Hour]] = {}
    for stage in STAGES:
        if any(change.parts(table) for table in (*stage.makes, *stage.reads)):
            written |= _run_hours(change, stage) if stage.makes == OFFSETS.makes else _run(change, stage)
    return written


def _run_hours(change: Change, stage: Stage) -> dict[str, set[Hour]]:
    written: dict[str, set[Hour]] = {table: set() for table in stage.makes}
    for made in kafka_context.hours_to_make(change):
        with change_connection(change) as con:
            kafka_context.make_views(con, change, made)
            stage.run(con)
            for table in stage.makes:
                rows = kafka_context.whole_rows(table, made)
                written[table] |= replace_changed_hours(con, change, table, rows, made, is_cheap=True)
    stamp_again(change)  # no summary reads the context columns
    return written


def _run(change: Change, stage: Stage) -> dict[str, set[Hour]]:
    with change_connection(change) as con:
        for table in dict.fromkeys((*stage.reads, *stage.uses, "flows")):
            view_of(con, change, table)
        for table in stage.makes:
            if table in stage.new:
                con.execute(f"CREATE TEMP VIEW {quoted(table)} AS FROM ({rows_of(change, table)}) LIMIT 0")
            else:
                view_of(con, change, table, hidden=True)
        stage.run(con)
        return {table: replace_changed_hours(con, change, table, f"FROM {quoted(table)}") for table in stage.makes}
