"""The page of MongoDB query shapes: narrowed to a client and an application, several shapes together."""

from __future__ import annotations

import wirewitness
from tests.app.dashboard.opening import kept, opened, sample, tables
from tests.conftest import SAMPLES
from wirewitness.reports.protocols.mongo.sections.shapes import shapes_sql

CAPTURE = "mongo_shapes_and_errors"


def test_shapes_are_narrowed_and_drawn_together() -> None:
    with wirewitness.read(str(SAMPLES / f"{CAPTURE}.pcapng"), tables=["mongo_commands"]) as analysis:
        app_name = (
            analysis.sql(
                "SELECT app_name FROM mongo_commands WHERE app_name IS NOT NULL AND collection IS NOT NULL GROUP BY 1 "
                "ORDER BY count(DISTINCT shape_id) LIMIT 1"
            )
            .column(0)[0]
            .as_py()
        )
        own = analysis.sql(shapes_sql(condition=f"app_name = '{app_name}'")).to_pylist()
        every = analysis.sql(shapes_sql()).to_pylist()
    assert 0 < len(own) < len(every)
    kept(sample(CAPTURE))
    together = [row["shape_id"] for row in own[:2]]
    app = opened(CAPTURE, "mongo-shapes", {"app": app_name, "together": ",".join(together)})
    assert not app.exception
    assert len(tables(app)[0]) == len(own)
    assert app.multiselect(key="ww_w_together").value == together
    app = opened(CAPTURE, "mongo-shapes", {"app": "' or true --", "address": "<b>", "together": "x,y"})
    assert not app.exception
    assert len(tables(app)[0]) == len(every), "what the capture does not hold is not chosen"
