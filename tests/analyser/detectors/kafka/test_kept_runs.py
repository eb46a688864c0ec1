"""Rules of which SQL leaves runs of reading out say nothing of these runs, whatever stands in them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from analyser.detectors.kafka import kaf114_resume_behind_commit, kaf120_fetch_jump, kaf121_records_skipped
from analyser.detectors.kafka.jumps import jump_of
from analyser.detectors.kafka.reading import RUNS, Run

OFFSETS = [name for name in Run._fields if name.endswith(("offset", "offset_before"))]
TIMES = [name for name in Run._fields if name.startswith("ts_")]
NOTHING = dict.fromkeys(Run._fields)


def drawn(dice: Random) -> dict[str, Any]:
    """A run with few values, so that they are often equal; half of them are not known."""
    known = {name: dice.randrange(-1, 4) for name in (*OFFSETS, *TIMES) if dice.random() < 0.5}
    return {
        **NOTHING, **known, "ts": 5, "partition": 0,
        "topic": dice.choice([None, "", "orders"]), "topic_id": dice.choice([None, "orders", "id"]),
        "client_address": dice.choice([None, "a"]), "stored_client_address": dice.choice([None, "a", "b"]),
        "client_id": dice.choice([None, "c"]), "stored_client_id": dice.choice([None, "c"]),
        "began_by": dice.choice(["offset", "topic id", "first"]),
        "change": dice.choice([None, "reset", "topic deleted", "partitions added", "records deleted"]),
    }  # fmt: skip


def jumps_by_itself(run: Run) -> bool:
    return kaf120_fetch_jump._jump(run, 0) is not None or (
        run.answered_offset is None and kaf120_fetch_jump._may_be_ahead(run)
    )


@pytest.mark.parametrize(
    ("kept", "tells"),
    [
        pytest.param(rows, tells, id=code)
        for code, rows, tells in (
            ("KAF114", kaf114_resume_behind_commit.DETECTOR.rows[RUNS], jump_of),
            ("KAF120", kaf120_fetch_jump.DETECTOR.rows[RUNS], jumps_by_itself),
            ("KAF121", kaf121_records_skipped.DETECTOR.rows[RUNS], jump_of),
        )
    ],
)
def test_runs_left_out_tell_nothing(kept: str, tells: Callable[[Run], object]) -> None:
    dice = Random(1)
    rows = [drawn(dice) for _ in range(8_000)]
    kinds = {name: pa.int64() for name in ("ts", "partition", *OFFSETS, *TIMES)}
    runs = pa.table({name: pa.array([row[name] for row in rows], kinds.get(name, pa.string())) for name in NOTHING})
    con = duckdb.connect(":memory:")
    con.register("runs", runs)
    chosen = con.execute(f"SELECT coalesce(({kept}), false) FROM runs").fetchall()
    told = [bool(tells(Run(**row))) for row in rows]
    assert sum(told) > 20
    assert not [row for row, (is_kept,), one in zip(rows, chosen, told, strict=True) if one and not is_kept]
    assert sum(is_kept for (is_kept,) in chosen) < len(rows) / 2
