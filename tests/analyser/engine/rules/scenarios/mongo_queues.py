"""Scenarios of MongoDB collections that are queues, loaded anew or walked through: MON133, MON139 to MON142, MON146."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row, at
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


def walked(
    times: int = 25, before: int = 4, every: float = 0.4, returned: int = 50,
    asks: str = '"updated":{"$gte":"?number"}', sort: str = '"updated":1', grows: int = 0,
) -> list[Row]:  # fmt: skip
    """Pages of 50 from other values each time, then from one value. grows: bytes of the reply, each time."""
    shape = f'{{"filter":{{{asks}}},"sort":{{{sort}}}}}'
    return [
        command(1 + n * every, query_shape=shape, shape_id="walk", limit=50, has_sort=True, documents_returned=returned,
                literals_id=f"{min(n, before):08x}", response_bytes=9_000 + n * grows)
        for n in range(before + times)
    ]  # fmt: skip


def numbered(times: int = 15, refused: int = 8, clients: int = 2, sort: int = -1, between: bool = False) -> list[Row]:
    """Clients that look for the last document and insert one behind it; so many of each one's are refused. between:
    each looks for something else before it inserts."""
    rows = []
    for k in range(clients):
        who = {"client_address": f"10.3.0.{21 + k}", "app_name": f"counter-{k}", "flow": f"n{k}"}
        for n in range(times):
            start = 1 + 0.5 * n + 0.01 * k
            rows.append(
                command(
                    start,
                    query_shape=f'{{"filter":{{}},"sort":{{"number":{sort}}}}}',
                    shape_id="last",
                    limit=1,
                    has_sort=True,
                    documents_returned=1,
                    literals_id=f"{k}{n:07x}",
                    **who,
                )
            )
            rows += (
                [
                    command(
                        start + 0.05,
                        query_shape='{"filter":{"n":"?number"},"sort":{"at":1}}',
                        shape_id="o",
                        limit=1,
                        has_sort=True,
                        literals_id=f"{n:08x}",
                        documents_returned=1,
                        **who,
                    )
                ]
                if between
                else []
            )
            answer = (
                {
                    "status": "error",
                    "error_code": 11000,
                    "write_errors": 1,
                    "write_error_codes": [11000],
                    "write_error_names": "DuplicateKey",
                    "n": 0,
                }
                if n < refused
                else {"n": 1}
            )
            rows.append(command(start + 0.1, "insert", documents_sent=1, literals_id=None, **{**who, **answer}))
    return rows  # fmt: skip


def poisoned(times: int = 20, others: int = 8, every: float = 0.5, empty: int = 0, back: bool = True,
             shape: str = TAKE, served: bool = False) -> list[Row]:  # fmt: skip
    """One document that is taken and put back again and again, while another client inserts others.

    empty: findAndModify that give nothing; served: a second worker takes the others."""
    one, other = _WORKERS
    rows = [inserted(0.5, 1)]
    for n in range(times):
        rows.append(taken(1 + n * every, 1, one, shape))
        rows += [_write(1 + n * every + every / 2, 1, one)] if back else []
    rows += [nothing(1.4 + n * every, one) for n in range(empty)]
    for n in range(others):
        rows.append(inserted(1.2 + n * every, 100 + n))
        rows += [taken(1.3 + n * every, 100 + n, other)] if served else []
    return rows


def inserted(seconds: float, document: int, **more: Any) -> Row:
    """A job of the producer."""
    who = {"client_address": "10.3.0.14", "app_name": "shop", "flow": "w14"}
    return command(seconds, "insert", **{"document_ids": [document], "documents_sent": 1, "n": 1, **who, **more})


def nothing(seconds: float, worker: dict[str, Any]) -> Row:
    """A findAndModify that gives nothing."""
    return command(seconds, "findAndModify", query_shape=TAKE, documents_returned=0, n=0, **worker)


def raced(
    count: int = 8, apart: float = 0.01, until: float = 0.1, shape: str = '{"_id":"?objectId","order":"?number"}',
    found: int = 0, refused: bool = False, alone: int = 0,
) -> list[Row]:  # fmt: skip
    """Two that ask for the same number, `apart` seconds after each other, and insert `until` seconds after that.

    found: what the second find returns; refused: the second insert is; alone: numbers for which both ask, at other
    times, and nobody inserts."""
    rows = []
    for n in range(count + alone):
        for place, who in enumerate(_WORKERS):
            start = 1 + n + place * apart
            known = {"query_shape": '{"filter":{"order":"?number"}}', "literals_id": f"{n:08x}", **who}
            rows.append(command(start, "find", documents_returned=found * place, **known))
            if n < count:
                made: dict[str, Any] = {"documents_sent": 1, "n": 1, "document_shape": shape, **who}
                if refused and place:
                    made |= {"n": 0, "status": "error", "error_code": 11000, "write_errors": 1}
                rows.append(command(start + until, "insert", **made))
    return rows


def behind(
    before: float = 1, later: float = 8, pace: float = 3, start: float = 20, end: float = 80, until: float = 78,
    batch: int = 0,
) -> list[Row]:  # fmt: skip
    """A queue that workers manage: `before` a second come, then from `start` until `until` `later` more, by a second
    producer. pace: what both workers take in a second at most. batch: that come at once at `start` instead."""
    import_of = {"client_address": "10.3.0.15", "app_name": "import", "flow": "w15"}
    coming = [(1 + n / before, n, {}) for n in range(int((end - 1) * before))]
    coming += [(start + n / later, 10_000 + n, import_of) for n in range(int((until - start) * later) if later else 0)]
    coming += [(start + n / 1000, 20_000 + n, import_of) for n in range(batch)]
    coming.sort(key=lambda one: one[0])
    rows = [inserted(seconds, document, **who) for seconds, document, who in coming]
    queue, number = [*coming], 0
    for n in range(int(end * pace)):
        seconds, worker = 1.05 + n / pace, _WORKERS[n % 2]
        if number < len(queue) and queue[number][0] < seconds:
            rows.append(taken(seconds, queue[number][1], worker))
            number += 1
        else:
            rows.append(nothing(seconds, worker))
    return [row for row in rows if row["ts"] <= at(end)]


def slower() -> list[Row]:
    """Four come each second; two workers take five, from a quarter of the time on two."""
    rows = [inserted(1 + n / 4, n) for n in range(316)]
    number, seconds = 0, 1.1
    while seconds < 80:
        ready = 1 + number / 4 < seconds
        worker = _WORKERS[number % 2]
        rows.append(taken(seconds, number, worker) if ready else nothing(seconds, worker))
        number += ready
        seconds += 0.2 if seconds < 21 else 0.5
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
    fires("MON140", "warning", "a job that always fails", **alone(*poisoned())),
    fires("MON141", "warning", "two that look and insert", **alone(*raced())),
    fires("MON146", "warning", "it stands at the time of a bulk load", **alone(*walked())),
    fires("MON146", "warning", "downwards", **alone(*walked(asks='"n":{"$lt":"?number"}', sort='"n":-1'))),
    fires("MON146", "info", "from one value since the capture began", **alone(*walked(before=0))),
    fires("MON147", "warning", "two that meet at one number", **alone(*numbered())),
    fires("MON142", "warning", "a second producer", **alone(*behind())),
    fires("MON142", "warning", "workers take less than before", **alone(*slower())),
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
    silent("MON140", "nine times", **alone(*poisoned(9))),
    silent("MON140", "it is not put back: a lease", **alone(*poisoned(back=False))),
    silent("MON140", "by its _id: a counter", **alone(*poisoned(shape='{"query":{"_id":"?string"}}'))),
    silent("MON140", "nothing is due in between: a schedule", **alone(*poisoned(empty=15))),
    silent("MON140", "others are served", **alone(*poisoned(served=True))),
    silent("MON140", "nobody else is there", **alone(*poisoned(others=4))),
    silent("MON141", "four times", **alone(*raced(4))),
    silent("MON141", "one after the other", **alone(*raced(apart=0.5))),
    silent("MON141", "the second one finds it", **alone(*raced(found=1))),
    silent("MON141", "a unique index refuses the second one", ("MON102", "warning"), **alone(*raced(refused=True))),
    silent("MON141", "other fields than those asked for",
           **alone(*raced(shape='{"_id":"?objectId","text":"?string"}'))),
    silent("MON141", "one value in twenty", ("MON119", "warning"), **alone(*raced(5, alone=95))),
    silent("MON146", "nineteen times", **alone(*walked(19))),
    silent("MON146", "for four seconds", **alone(*walked(20, every=0.2))),
    silent("MON146", "a page that is not full", **alone(*walked(returned=49))),
    silent("MON146", "it goes on", **alone(*walked(0, before=30))),
    silent("MON146", "the latest of a range", **alone(*walked(sort='"updated":-1'))),
    silent("MON146", "what is due", **alone(*walked(asks='"due":{"$lte":"?date"}', sort='"due":1'))),
    silent("MON146", "a second condition: a queue", **alone(
        *walked(asks='"updated":{"$gte":"?number"},"state":"?string"')
    )),
    silent("MON146", "other documents each time", **alone(*walked(grows=10))),
    silent("MON147", "four times each", **alone(*numbered(refused=4))),
    silent("MON147", "one of ten", **alone(*numbered(60, 6))),
    silent("MON147", "one client", **alone(*numbered(30, 15, clients=1))),
    silent("MON147", "the first one", **alone(*numbered(sort=1))),
    silent("MON147", "another look in between", **alone(*numbered(between=True))),
    silent("MON142", "as much as they take", **alone(*behind(later=1.5))),
    silent("MON142", "a batch that is worked off", ("MON120", "info"), **alone(*behind(later=0, batch=150))),
    silent("MON142", "a peak that is over", **alone(*behind(later=6, until=35))),
    silent("MON142", "behind from the beginning", **alone(*behind(before=8, later=0))),
    silent("MON139", "one that renews its lease", **alone(
        *(row for n in range(10) for row in (
            taken(1 + n, n, _WORKERS[0]), taken(1.4 + n, n, _WORKERS[0], '{"query":{"_id":"?objectId"}}'),
            _write(1.8 + n, n, _WORKERS[0]))))),
]  # fmt: skip
