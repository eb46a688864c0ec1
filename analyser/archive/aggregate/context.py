"""The context of a whole dataset: what rows know from other rows, over months.

In: a change that has all base rows (from whatever connection and run), and who works. Out: the same change in which
commits, fetches and publishes have their context columns, and with the tables that are made of others. It is done by
the stages of `analyser/engine/facts`, as for captures, in tasks, by keys where there are many rows (`keyed.py`); DuckDB
keeps to its memory limit and spills. Of Kafka's offsets, only hours are read that can come out otherwise than in the
last run (`kafka_context.py`).
"""

from __future__ import annotations

from wirewitness.analyser.archive.aggregate import kafka_context
from wirewitness.analyser.archive.aggregate.derived import Hour
from wirewitness.analyser.archive.aggregate.hour_summaries import stamp_again
from wirewitness.analyser.archive.aggregate.keyed import run_stage
from wirewitness.analyser.archive.dataset.change import Change
from wirewitness.analyser.archive.spark.workers import HERE, Workers
from wirewitness.analyser.engine.facts.stage import OFFSETS, TITLES
from wirewitness.analyser.engine.facts.stages import STAGES

# As stages are seen in Spark, by the tables that they make.
NAMES = {makes: f"context: {title}" for makes, title in TITLES.items()}


def run_context(change: Change, workers: Workers = HERE) -> dict[str, set[Hour]]:
    """Run all stages; table -> hours that were written anew. Once for each change, when all base rows are added.

    Context columns that rows have from an earlier run count for nothing: they are made anew where they can differ.
    """
    written: dict[str, set[Hour]] = {}
    for stage in STAGES:
        if any(change.parts(table) for table in (*stage.makes, *stage.reads)):
            if stage.makes == OFFSETS.makes:
                written |= kafka_context.make_hours(change, workers, kafka_context.hours_to_make(change, workers))
                stamp_again(change)  # no summary reads the context columns
            else:
                written |= run_stage(change, workers, NAMES[stage.makes], stage)
    return written
