"""Commands of MongoDB. In: rows of `reports.questions.mongo_rows` and `reports.sections.shapes`; out: charts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from app.dashboard.charts.bars import Rows, time_bars
from app.dashboard.charts.theme import PALETTE, QUIET, AnyChart, frame

_TEXT = 90


def shape_times(rows: Rows) -> AnyChart:
    """Bars of the time that each shape took in sum, the longest first."""
    data = frame([{**row, "name": _name(row), "ms": row["sum_ms"] or 0} for row in rows])
    digits = ",.0f" if max((row["sum_ms"] or 0 for row in rows), default=0) >= 10 else ",.2f"
    chart: AnyChart = (
        alt.Chart(data, height=max(24 * len(rows), 48))
        .mark_bar(height=13, color=PALETTE[2])
        .encode(
            alt.X("ms:Q", title="ms in sum", axis=alt.Axis(tickCount=6, format=digits)),
            alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelLimit=460, labelOverlap=False)),
            tooltip=["namespace:N", "operation:N", "pattern:N", alt.Tooltip("count:Q", format=","),
                     alt.Tooltip("mean_ms:Q", format=",.3f"), alt.Tooltip("p95_ms:Q", format=",.3f"),
                     alt.Tooltip("max_ms:Q", format=",.3f")],
        )
    )  # fmt: skip
    return chart


def commands(rows: Rows, width_ns: int, domain: tuple[float, float] | None = None) -> AnyChart:
    """Commands a second by name."""
    names = sorted({row["kind"] for row in rows} - {"other"})
    colours = {name: PALETTE[place % len(PALETTE)] for place, name in enumerate(names)} | {"other": QUIET}
    return time_bars(rows, width_ns, kind="kind", value="commands", colours=colours, title="commands/s",
                     per_second=True, domain=domain)  # fmt: skip


def _name(row: Mapping[str, Any]) -> str:
    """Short and unlike the others': the shape's id tells two apart whose patterns begin alike."""
    text = f"{row['namespace']} {row['operation']} {row['pattern'] or ''}".strip()
    return text if len(text) <= _TEXT else f"{text[: _TEXT - 8]}.. {str(row['shape_id'])[:5]}"
