"""Scenarios of MongoDB collections that are queues or are loaded anew: MON133, MON139."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row
from tests.analyser.engine.rules.scenarios.build_mongo import alone, command
from tests.analyser.engine.rules.scenarios.mongo_limits import reads
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

_WORKERS: tuple[dict[str, Any], ...] = tuple(
    {"client_address": f"10.3.0.{n}", "app_name": f"worker-{n}", "flow": f"w{n}"} for n in (11, 12)
)
TAKE = '{"query":{"state":"?string"},"update":{"$set":{"state":"?string"}}}'
SWEEP = '{"updates":[{"q":{"at":{"$lt":"?number"}},"u":{"$set":{"state":"?string"}},"multi":true}]}'


def _write(seconds: float, document: int, worker: dict[str, Any], **more: Any) -> Row:
    return command(seconds, "update", **{"document_ids": [document], "n": 1, "n_modified": 1, **worker, **more})


def taken(seconds: float, document: int, worker: dict[str, Any], shape: str = TAKE, **more: Any) -> Row:
    """A document that findAndModify gave."""
    return command(
        seconds, "findAndModify",
        **{"document_ids": [document], "documents_returned": 1, "n": 1, "query_shape": shape, **worker, **more},
    )  # fmt: skip


def given_twice(
    count: int = 8, once: int = 4, again: float = 2, work: float = 5, sweep: bool = False, early: bool = False,
    workers: tuple[dict[str, Any], ...] = _WORKERS, **more: Any,
) -> list[Row]:  # fmt: skip
    """So many documents, one each 8 s, which a second worker gets `again` seconds after the first, `work` seconds
    before that is through; and some that are given once. early: the first one writes it before the second gets it, too.
    more: of the second take."""
    rows = []
    for n in range(count):
        start, (one, other) = 1 + 8 * n, (workers if n % 2 else workers[::-1])
        rows += [
            taken(start, n, one), taken(start + again, n, other, **more),
            _write(start + work, n, one), _write(start + again + work, n, other, n_modified=0),
        ]  # fmt: skip
        rows += [_write(start + again / 2, n, one)] if early else []
        rows += [
            command(start + again - 0.2, "update", query_shape=SWEEP, shape_id="s9", n=1, n_modified=1,
                    app_name="reaper", client_address="10.3.0.13", flow="w13")
        ] if sweep else []  # fmt: skip
    for n in range(once):
        rows += [taken(100 + n, 1000 + n, workers[0]), _write(100.5 + n, 1000 + n, workers[0])]
    return rows


def loaded(
    times: int = 3, lasts: float = 4, during: int = 3, after: int = 6, name: str = "drop", **more: Any
) -> list[Row]:
    """A collection that is dropped and filled again for some seconds, one load each 10 s, while somebody reads: finds
    return 6 documents, `during` of them while it is filled, `after` when all is done."""
    rows = reads(20, 1, 6, every=0.4)
    for n in range(times):
        start = 10 + 10 * n
        rows.append(command(start, name, **more))
        rows += [command(start + (k + 1) * lasts / 5, "insert", documents_sent=30, n=30) for k in range(5)]
        rows += reads(10, start + 0.1, during, every=lasts / 11)
        rows += reads(10, start + lasts + 0.2, 6 if n < times - 1 else after, every=0.4)
    return rows


QUEUES_FIRES: list[Scenario] = [
    fires("MON133", "warning", "it is filled again while others read", **alone(*loaded())),
    fires("MON133", "warning", "once, and all reads find nothing meanwhile", **alone(*loaded(1, during=0))),
    fires(
        "MON133", "warning", "emptied and filled again",
        **alone(*loaded(name="delete", n=300, query_shape='{"deletes":[{"q":{},"limit":0}]}')),
    ),
    fires("MON139", "warning", "a lease that is shorter than the work", **alone(*given_twice())),
    fires("MON139", "warning", "a job puts back what is worked on", **alone(*given_twice(sweep=True))),
    fires("MON139", "warning", "two threads of one application", **alone(*given_twice(workers=_WORKERS[:1] * 2))),
]  # fmt: skip
QUEUES_NEAR_MISSES: list[Scenario] = [
    silent("MON133", "others see all of it all the time", **alone(*loaded(during=6))),
    silent("MON133", "less than before: it shrinks", **alone(*loaded(after=3))),
    silent("MON133", "filled at once", **alone(*loaded(lasts=0.01))),
    silent("MON139", "four of them", **alone(*given_twice(4))),
    silent("MON139", "one in ten", **alone(*given_twice(8, once=80))),
    silent("MON139", "each once", **alone(*given_twice(0, once=20))),
    silent("MON139", "a second stage, when the first is through", **alone(*given_twice(again=6))),
    silent("MON139", "a note behind the work", **alone(*given_twice(early=True))),
    silent("MON139", "two stages that work at once, each by a shape of its own",
           **alone(*given_twice(shape_id="other"))),
    silent("MON139", "one that renews its lease", **alone(
        *(row for n in range(10) for row in (
            taken(1 + n, n, _WORKERS[0]), taken(1.4 + n, n, _WORKERS[0], '{"query":{"_id":"?objectId"}}'),
            _write(1.8 + n, n, _WORKERS[0]))))),
]  # fmt: skip
