"""Rules of which SQL leaves runs of reading out say nothing of these runs, whatever stands in them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from wirewitness.analyser.engine.rules.columns import held_rows
from wirewitness.analyser.engine.rules.frame import Frame, Span
from wirewitness.analyser.kafka.rules import kaf114_resume_behind_commit, kaf120_fetch_jump, kaf121_records_skipped
from wirewitness.analyser.kafka.rules.fetch_range_columns import FetchRangeColumns
from wirewitness.analyser.kafka.rules.fetch_ranges import RUNS, FetchRange
from wirewitness.analyser.kafka.rules.offset_resets import jump_of

OFFSETS = [name for name in FetchRange._fields if name.endswith(("offset", "offset_before"))]
TIMES = [name for name in FetchRange._fields if name.startswith("ts_")]
NOTHING = dict.fromkeys(FetchRange._fields)


def drawn(dice: Random) -> dict[str, Any]:
    """A run with few values, so that they are often equal; half of them are not known."""
    known = {name: dice.randrange(-1, 4) for name in (*OFFSETS, *TIMES) if dice.random() < 0.5}
    return {
        **NOTHING, **known, "ts": 5, "partition": 0,
        "topic": dice.choice([None, "", "orders"]), "topic_id": dice.choice([None, "orders", "id"]),
        "client_address": dice.choice([None, "a"]), "stored_client_address": dice.choice([None, "a", "b"]),
        "client_id": dice.choice([None, "c"]), "stored_client_id": dice.choice([None, "c"]),
        "started_by": dice.choice(["offset", "topic id", "first"]),
        "out_of_range_reported_by": dice.choice([None, "ListOffsets"]),
        "change": dice.choice([None, "reset", "topic deleted", "partitions added", "records deleted"]),
    }  # fmt: skip


def jumps_to(rows: pa.RecordBatch) -> list[bool]:
    jumps = [jump_of(FetchRange(**row)) for row in rows.to_pylist()]
    return [jump is not None and jump.cause != "truncated" for jump in jumps]


def jumps_by_itself(rows: pa.RecordBatch) -> list[bool]:
    runs = FetchRangeColumns(Frame(rows.schema, [Span(held_rows(rows), 0, len(rows))]))
    jumps = {*kaf120_fetch_jump._jumps(runs, 0).rows.tolist(), *np.flatnonzero(kaf120_fetch_jump._may_be_ahead(runs))}
    return [row in jumps for row in range(len(rows))]


@pytest.mark.parametrize(
    ("kept", "tells"),
    [
        pytest.param(rows, tells, id=code)
        for code, rows, tells in (
            ("KAF114", kaf114_resume_behind_commit.RULE.rows[RUNS], jumps_to),
            ("KAF120", kaf120_fetch_jump.RULE.rows[RUNS], jumps_by_itself),
            ("KAF121", kaf121_records_skipped.RULE.rows[RUNS], jumps_to),
        )
    ],
)
def test_runs_left_out_tell_nothing(kept: str, tells: Callable[[pa.RecordBatch], list[bool]]) -> None:
    dice = Random(1)
    rows = [drawn(dice) for _ in range(24_000)]
    kinds = {name: pa.int64() for name in ("ts", "partition", *OFFSETS, *TIMES)}
    runs = pa.record_batch({n: pa.array([row[n] for row in rows], kinds.get(n, pa.string())) for n in NOTHING})
    con = duckdb.connect(":memory:")
    con.register("runs", pa.Table.from_batches([runs]))
    chosen = con.execute(f"SELECT coalesce(({kept}), false) FROM runs").fetchall()
    told = tells(runs)
    assert sum(told) > 20
    assert not [row for row, (is_kept,), one in zip(rows, chosen, told, strict=True) if one and not is_kept]
    assert sum(is_kept for (is_kept,) in chosen) < len(rows) / 2


def jump(run: FetchRange, least: int) -> tuple[int, int, int] | None:
    """KAF120's rule of one run: from where to where it jumped, and the records between."""
    origin, target, asked = run.next_offset_before, run.first_offset, run.out_of_range_offset
    unknown = None in (origin, target) or run.answered_offset is not None or run.ts_last_gap is not None
    if unknown or not run.is_named or run.started_by != "offset":
        return None
    assert origin is not None
    assert target is not None
    reached, stored = max(origin, run.group_offset_before or 0), run.stored_offset or 0
    if asked is not None:
        led_to = (origin, run.stored_offset, run.fetch_offset_before)
        beyond = asked > origin and asked not in led_to and run.out_of_range_reported_by is None
        return (origin, asked, asked - reached) if beyond else None
    forward = target > reached + least and run.ts_listed is None
    untold = run.change is None and run.ts_epoch_end is None
    if forward or (target < min(stored, run.fetch_offset_before or 0) and untold):
        return origin, target, target - reached if target > origin else (stored or origin) - target
    return None


@pytest.mark.parametrize("least", [0, 1])
def test_columns_say_of_each_run_what_the_rule_says(least: int) -> None:
    dice = Random(2)
    rows = [drawn(dice) for _ in range(24_000)]
    kinds = {name: pa.int64() for name in ("ts", "partition", *OFFSETS, *TIMES)}
    runs = pa.record_batch({n: pa.array([row[n] for row in rows], kinds.get(n, pa.string())) for n in NOTHING})
    found = kaf120_fetch_jump._jumps(
        FetchRangeColumns(Frame(runs.schema, [Span(held_rows(runs), 0, len(runs))])), least
    )
    columns = (column.tolist() for column in (found.rows, found.origins, found.targets, found.records))
    assert {row: tuple(one) for row, *one in zip(*columns, strict=True)} == {
        row: one for row, values in enumerate(rows) if (one := jump(FetchRange(**values), least)) is not None
    }
    assert len(found.rows) > 20
