"""Scenarios of the rules about what applications of MongoDB do, and what comes of it."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row, at
from tests.analyser.engine.rules.scenarios.build_mongo import (
    TRANSACTION,
    alone,
    command,
    failed,
    failed_write,
    flow_row,
    hello,
    in_transaction,
    opened,
)
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

_BY_ID = '{"updates":[{"q":{"_id":"?number"},"u":{"$set":{"state":"?string"}}}]}'
_DUE = '{"updates":[{"q":{"due":{"$lt":"?date"}},"u":{"$set":{"state":"?string"}}}]}'
_UPSERTS = '{"updates":[{"q":{"_id":"?number"},"u":{"$set":{"x":"?number"}},"upsert":true}]}'
_LEASE = '{"updates":[{"q":{"_id":"?string","owner":"?string"},"u":{"$set":{"owner":"?string","until":"?date"}}}]}'
_SECOND = {"client_address": "10.3.0.2", "app_name": "stock", "flow": "b"}


def many(count: int, name: str = "find", every: float = 1.0, took_ms: float = 2, **more: Any) -> list[Row]:
    """The same command with other values each time."""
    return [
        command(1 + n * every, name, took_ms, **{"literals_id": f"{n:08x}", "documents_returned": 1, **more})
        for n in range(count)
    ]


def updates(count: int, every: float = 1.0, shape: str = _BY_ID, **more: Any) -> list[Row]:
    """Updates of one document each that match nothing."""
    known = {"documents_sent": 1, "n": 0, "n_modified": 0, "query_shape": shape}
    return many(count, "update", every, **{**known, **more})


def inserts(count: int, every: float = 0.004, **more: Any) -> list[Row]:
    """Inserts of one document each."""
    return many(count, "insert", every, **{"documents_sent": 1, "n": 1, "literals_id": None, **more})


def nothing(count: int, every: float, **more: Any) -> list[Row]:
    """Finds that return nothing."""
    return many(count, "find", every, **{"documents_returned": 0, "cursor_exhausted": True, **more})


def same(count: int, every: float = 0.02, took_ms: float = 2, **more: Any) -> list[Row]:
    """The same question with the same answer."""
    return many(count, "find", every, took_ms, **{"literals_id": "same", "documents_returned": 3, **more})


def rises(count: int, first: float, last: float, column: str = "latency_ms", **more: Any) -> list[Row]:
    """A query of which something grows evenly."""
    values = [first + (last - first) * n / (count - 1) for n in range(count)]
    return [
        command(1 + n / 5, "aggregate", value if column == "latency_ms" else 2, query_shape='{"pipeline":[]}',
                literals_id=f"{n:08x}", documents_returned=5,
                **({} if column == "latency_ms" else {column: int(value)}), **more)
        for n, value in enumerate(values)
    ]  # fmt: skip


def stopped_insert(seconds: float, sent: int = 10, stored: int = 3, **more: Any) -> Row:
    """An ordered insert that ended at a duplicate key."""
    return command(
        seconds, "insert", documents_sent=sent, n=stored, status="error", error_code=11000, write_errors=1,
        write_error_codes=[11000], write_error_names="DuplicateKey", document_ids=list(range(sent)), **more,
    )  # fmt: skip


def unread(seconds: float, document: int, **more: Any) -> Row:
    """An insert with w: 0."""
    return command(
        seconds, "insert", None, status="one_way", unacknowledged=True, documents_sent=1, document_ids=[document],
        write_concern='{"w":0}', **more,
    )  # fmt: skip


def held(open_s: float, conflicts: int, **more: Any) -> list[Row]:
    """A transaction that is open for so long, and writes of others to its document that are refused meanwhile."""
    first = {"documents_sent": 1, "n": 1, "n_modified": 1, "document_ids": [7], "query_shape": _BY_ID}
    refused = {"status": "error", "ok": False, "error_code": 112, "error_labels": "TransientTransactionError"}
    return [
        command(1, "update", **{**TRANSACTION, **first}),
        *(
            command(1.1 + n * open_s / (conflicts + 1), "update",
                    **{**_SECOND, **TRANSACTION, **first, **refused, "lsid": "s2", "txn_number": n + 1, **more})
            for n in range(conflicts)
        ),
        in_transaction(1 + open_s, 1, "commitTransaction", collection=None),
        *(
            command(20 + n / 10, "commitTransaction", flow="b", client_address="10.3.0.2", app_name="stock", lsid="s2",
                    txn_number=100, autocommit=False, collection=None)
            for n in range(1)
        ),
    ]  # fmt: skip


def written_back(times: int, between: bool = True, shape: str = _BY_ID, **more: Any) -> list[Row]:
    """Two applications read a document and write it back; between: the second one from before the first one's write."""
    write = {"document_ids": [7], "documents_sent": 1, "n": 1, "n_modified": 1, "query_shape": shape}
    read = {"document_ids": [7], "documents_returned": 1, "cursor_exhausted": True}
    rows = []
    for n in range(times):
        start = 1 + 5 * n
        second = start + 0.1 if between else start + 0.3
        rows += [
            command(start, "find", **read),
            command(second, "find", **{**_SECOND, **read}),
            command(start + 0.2, "update", **{**write, "literals_id": f"a{n}"}),
            command(start + 0.4, "update", **{**_SECOND, **write, "literals_id": f"b{n}", **more}),
        ]
    return rows


def killed(count: int, documents: int = 101, more: int = 0) -> list[Row]:
    """Cursors of which the application wants no second batch."""
    rows = []
    for n in range(count):
        cursor = {"cursor_id": 100 + n, "literals_id": f"{n:08x}"}
        rows.append(opened(1 + n, documents_returned=documents, **cursor))
        rows += [
            command(1.1 + n + i / 100, "getMore", cursor_exhausted=False, documents_returned=5, **cursor)
            for i in range(more)
        ]
        rows.append(command(1.5 + n, "killCursors", cursors_killed=[100 + n]))
    return rows


def old_server(count: int, wire: int = 5, **more: Any) -> list[Row]:
    """Hellos of a server with that wire version."""
    return [hello(1 + 10 * n, max_wire_version=wire, server_role="standalone", **more) for n in range(count)]


def says_hello_only(count: int, age_s: float = 3, gap_bytes: int = 0, **more: Any) -> dict[str, list[Row]]:
    """Connections with a hello each, which the client closes. gap_bytes: what each of them lacks."""
    rows = [hello(1 + 5 * n, flow=f"h{n}", **{"max_wire_version": 21, **more}) for n in range(count)]
    ends = [5 * n + 1 + age_s for n in range(count)]
    own = {"closed_by": "client", "gap_bytes": gap_bytes}
    flows = [flow_row(f"h{n}", end, 1 + 5 * n, **own) for n, end in enumerate(ends)]
    return {"mongo_commands": rows, "flows": flows}


def with_commands(given: dict[str, list[Row]], *rows: Row) -> dict[str, list[Row]]:
    """The same with more commands."""
    return given | {"mongo_commands": [*given["mongo_commands"], *rows]}


def two_speeds(ms: float, others_ms: float = 2, count: int = 30, **more: Any) -> list[Row]:
    """Two applications with one query."""
    return [
        *many(count, took_ms=ms, **more),
        *many(count, took_ms=others_ms, client_address="10.3.0.2", app_name="stock", flow="b"),
    ]


def typed(kind: str, other: str, count: int = 9, found: int = 1, part: str = "filter") -> list[Row]:
    """Three applications with one field; the first one uses it with another type."""
    first = f'{{"{part}":{{"customer":"{kind}"}}}}'
    others = f'{{"{part}":{{"customer":"{other}"}}}}'
    return [
        *many(count, query_shape=first, shape_id="x", documents_returned=found, cursor_exhausted=True),
        *(
            row
            for name in ("stock", "mail")
            for row in many(count, query_shape=others, shape_id="y", flow=name, app_name=name)
        ),
    ]


def both_insert(count: int, **more: Any) -> list[Row]:
    """Two clients that insert the same documents, the second one in vain."""
    rows = []
    for n in range(count):
        one = {"documents_sent": 1, "document_ids": [n]}
        rows.append(command(1 + n, "insert", n=1, **one))
        rows.append(failed_write(1.3 + n, 11000, **{**_SECOND, **one, "n": 0, **more}))
    return rows


_ADDS = '{"updates":[{"q":{"_id":"?number"},"u":{"$inc":{"bonus":"?number"}}}]}'


def walks(count: int, start: float, flow: str = "a", values: str = "same", **more: Any) -> list[Row]:
    """Updates of one document after the other, each once."""
    known = {"documents_sent": 1, "n": 1, "n_modified": 1, "query_shape": _ADDS}
    return [
        command(start + n / 5, "update", flow=flow, document_ids=[n], literals_id=f"{values}{n}", **{**known, **more})
        for n in range(count)
    ]


def looks_for_work(what: str, **more: Any) -> list[Row]:
    """Finds of what is to be done."""
    shape = {"query_shape": '{"filter":{"state":"?string"}}', "shape_id": "work", "literals_id": what}
    return [command(1.05 + n / 2, documents_returned=1, **shape, **more) for n in range(12)]


def follows(count: int, every: float, cursors: int = 1, **more: Any) -> list[Row]:
    """getMores that let the server wait for a moment and bring nothing."""
    known = {"cursor_exhausted": False, "documents_returned": 0, "await_time_ms": 1}
    return [command(1 + n * every, "getMore", 1, cursor_id=70 + n % cursors, **{**known, **more}) for n in range(count)]


def beside_work(name: str, count: int, work: int = 60, every: float = 1.0, **more: Any) -> list[Row]:
    """Finds, and so often such a command between them."""
    pause = work * every / count
    return [*many(work, every=every), *(command(1 + every / 2 + n * pause, name, **more) for n in range(count))]


_ROUND = [in_transaction(9, 3, "commitTransaction", collection=None)]
MONGO_USE_FIRES: list[Scenario] = [
    fires("MON131", "warning", "a job runs twice at once", **alone(*walks(40, 1), *walks(40, 4, "b"))),
    fires("MON131", "warning", "a schedule on each of two hosts", **alone(
        *walks(40, 1), *walks(40, 1.1, **_SECOND))),
    fires("MON131", "warning", "two workers that do not claim their work", **alone(
        *walks(40, 1), *walks(40, 1.1, values="mine", **_SECOND),
        *looks_for_work("new"), *looks_for_work("new", **_SECOND))),
    fires("MON132", "warning", "it hardly lets the server wait", **alone(
        opened(0.5, tailable=True), *follows(80, 0.02))),
    fires("MON132", "warning", "a tailable cursor on nothing", **alone(*nothing(50, 0.05, tailable=True))),
    fires("MON119", "warning", "a ping before each find", **alone(*beside_work("ping", 60, every=0.2))),
    fires("MON102", "warning", "a value that is not valid", **alone(failed(1, 2))),
    fires("MON102", "info", "it was put right", **alone(failed(1, 13), command(2))),
    fires("MON102", "warning", "no such command, again and again", **alone(
        command(0.5), *(failed(n, 59, "frobnicate") for n in range(1, 8)))),
    fires("MON102", "warning", "a monitor asks for what the server does not know", **alone(
        *(failed(n, 59, "top", database="admin", collection=None) for n in range(1, 13)))),
    fires("MON102", "warning", "again without a pause", **alone(
        *(failed(1 + n / 100, 26, "collStats") for n in range(40)))),
    fires("MON102", "info", "again with pauses", **alone(*(failed(1 + n, 26, "collStats") for n in range(40)))),
    fires("MON102", "info", "bulk writes with some duplicates", **alone(
        *(failed_write(n, 11000, n=90, documents_sent=91) for n in range(20)))),
    fires("MON102", "info", "a few of many events come twice", **alone(
        *(failed_write(n, 11000, n=0) for n in range(6)), *inserts(60, 1, flow="b"))),
    fires("MON118", "warning", "no document has this id", **alone(*updates(25))),
    fires("MON118", "warning", "what they write is there", **alone(*updates(25, n=1))),
    fires("MON118", "warning", "an upsert without an effect", **alone(*updates(25, shape=_UPSERTS))),
    fires("MON118", "warning", "a search without a pause", **alone(*updates(40, 0.05, _DUE))),
    fires("MON118", "warning", "a lease without a pause", **alone(*updates(40, 0.05, _LEASE))),
    fires("MON118", "warning", "deletes", **alone(
        *many(25, "delete", n=0, query_shape='{"deletes":[{"q":{"a":1}}]}'))),
    fires("MON118", "warning", "a queue without a pause", **alone(*many(60, "findAndModify", 0.05, n=0))),
    fires("MON119", "warning", "a loop that finds nothing", **alone(*nothing(60, 0.05, literals_id="same"))),
    fires("MON119", "warning", "a type that no document has", **alone(*nothing(40, 1))),
    fires("MON119", "info", "a list of few: two of forty are there", **alone(
        *nothing(40, 1), *(one | {"shape_id": nothing(1, 1)[0]["shape_id"], "documents_returned": 1,
                                  "literals_id": f"b{n}", "exchange_id": f"f{n}", "ts": at(5.5 + n)}
                           for n, one in enumerate(nothing(2, 1))))),
    fires("MON119", "warning", "the same again and again", **alone(*same(80, 0.1))),
    fires("MON119", "info", "the same beside other work", **alone(*same(60, 0.1), *many(300, "aggregate", 0.01))),
    fires("MON119", "info", "a load test over four connections", **alone(*(
        row | {"exchange_id": f"{flow}{n}", "flow_id": flow}
        for flow in "abcd" for n, row in enumerate(same(500, 0.012, 11))))),
    fires("MON119", "warning", "a loop without a pause, on one connection", **alone(*same(500, 0.012, 11))),
    fires("MON119", "warning", "createIndexes for each request", **alone(*beside_work("createIndexes", 30))),
    fires(
        "MON119", "warning", "a count for each page",
        **alone(*many(30, documents_returned=20), *many(30, "count", took_ms=40, flow="b", shape_id="c")),
    ),
    fires("MON120", "warning", "an import", **alone(*inserts(100))),
    fires("MON120", "warning", "an import to a slow disk", **alone(*inserts(60, 0.032, took_ms=30))),
    fires("MON120", "warning", "updates one by one", **alone(*updates(120, 0.003, n=1, n_modified=1))),
    fires("MON120", "info", "an import beside other work", **alone(*inserts(60), *many(300, "aggregate", 0.01, 30))),
    fires(
        "MON120", "warning", "others insert many at once",
        **alone(*inserts(60, 0.02), *inserts(9, 1, documents_sent=50, n=50, app_name="stock", flow="b")),
    ),
    fires(
        "MON120", "info", "an order now and then, where others import",
        **alone(*inserts(60, 0.4), *inserts(9, 1, documents_sent=50, n=50, app_name="stock", flow="b")),
    ),
    fires("MON121", "warning", "a session each", **alone(*(row | {"lsid": f"s{n}"} for n, row in enumerate(many(30))))),
    fires("MON122", "warning", "pages by skip", **alone(*(
        row | {"skip": 20 * n} for n, row in enumerate(rises(80, 2, 40))))),
    fires("MON122", "warning", "a collection that grows", **alone(*rises(80, 2, 40))),
    fires("MON122", "warning", "an $in with ever more values", **alone(*(
        row | {"query_shape": '{"filter":{"a":{"$in":"?array<?number>"}}}'}
        for row in rises(80, 500, 5_000, "request_bytes")))),
    fires("MON122", "info", "an $in with some values more", **alone(*(
        row | {"query_shape": '{"filter":{"a":{"$in":"?array<?number>"}}}'}
        for row in rises(80, 500, 2_500, "request_bytes")))),
    fires("MON122", "warning", "a long $in takes longer", **alone(*(
        row | {"latency_ms": 2 + n * 7 % 80 / 2, "request_bytes": 300 + n * 7 % 80 * 50}
        for n, row in enumerate(rises(80, 2, 40))))),
    fires("MON122", "info", "a little", **alone(*rises(80, 4, 11))),
    fires("MON122", "warning", "replies that grow", **alone(*rises(80, 2_000, 90_000, "response_bytes"))),
    fires("MON122", "warning", "an $in that grows", **alone(*rises(80, 1_000, 50_000, "request_bytes"))),
    fires("MON123", "warning", "an ordered insert stops", **alone(stopped_insert(1))),
    fires("MON123", "warning", "a bulkWrite stops", **alone(
        failed_write(1, 11000, command="bulkWrite", documents_sent=27, n=1, untried=25))),
    fires(
        "MON123", "warning", "w: 0 with an _id that is there",
        **alone(command(1, "insert", n=1, documents_sent=1, document_ids=[7]), unread(2, 7)),
    ),
    fires(
        "MON123", "warning", "w: 0 and not found later",
        **alone(unread(1, 7), command(2, document_ids=[7], documents_returned=0, cursor_exhausted=True)),
    ),
    fires("MON123", "warning", "w: 0 at a secondary", **alone(unread(1, 7, server_role="secondary"))),
    fires("MON123", "info", "many with w: 0", **alone(*(unread(1 + n, n) for n in range(25)))),
    fires("MON124", "warning", "far away", **alone(*two_speeds(60))),
    fires("MON124", "warning", "from another member", **alone(*two_speeds(
        60, server_address="10.3.0.10", read_preference="secondary"))),
    fires("MON125", "warning", "a second", **alone(*held(1.5, 2))),
    fires("MON125", "info", "a moment", **alone(*held(0.3, 2))),
    fires("MON125", "warning", "many in vain", **alone(*held(0.8, 12))),
    fires(
        "MON125", "warning", "the collection only",
        **alone(*(row | {"document_ids": None} for row in held(1.5, 2))),
    ),
    fires(
        "MON125", "warning", "a write waits until it commits",
        **alone(
            *(row for row in held(1.5, 0) if row["ts"] < at(19)),
            command(1.2, "update", 1_310, **{**_SECOND, "document_ids": [7], "n": 1, "n_modified": 1}),
        ),
    ),
    fires("MON126", "warning", "from an old state", **alone(*written_back(3))),
    fires("MON126", "info", "once", **alone(*written_back(1))),
    fires(
        "MON126", "warning", "whole documents",
        **alone(*written_back(2, shape='{"updates":[{"q":{"_id":"?number"},"u":"?object"}]}')),
    ),
    fires("MON127", "warning", "MongoDB 3.4", **alone(*old_server(4))),
    fires("MON127", "warning", "it turns away each time", **with_commands(
        says_hello_only(4), command(2, flow="w", app_name="stock"))),
    fires("MON127", "info", "nobody works there", **says_hello_only(4)),
    fires("MON129", "warning", "a text for a number", **alone(*typed("?string", "?number", found=0))),
    fires("MON129", "warning", "it sets a text", **alone(*(
        row | {"command": "update", "query_shape": f'{{"updates":[{{"q":{{"a":"?number"}},"u":{{"$set":{kind}}}}}]}}'}
        for row in typed("?string", "?number")
        for kind in ['{"x":"?string"}' if row["shape_id"] == "x" else '{"x":"?number"}']))),
    fires("MON129", "warning", "it sets a text where others count", **alone(*(
        row | {"command": "update", "query_shape": f'{{"updates":[{{"q":{{"_id":"?number"}},"u":{change}}}]}}'}
        for row in typed("?string", "?number")
        for change in ['{"$set":{"n":"?string"}}' if row["shape_id"] == "x" else '{"$inc":{"n":"?number"}}']))),
    fires("MON129", "warning", "it inserts a text from then on", **alone(*(
        row | {"document_shape": f'{{"_id":"?objectId","price":"{kind}"}}'}
        for name in ("billing", "stock")
        for n, row in enumerate(inserts(20, 1, app_name=name, flow=name))
        for kind in ["?string" if name == "billing" and n > 9 else "?number"]))),
    fires("MON129", "warning", "of two, the one that finds nothing", **alone(*(
        row for row in typed("?string", "?objectId", found=0) if row["app_name"] != "mail"))),
    fires("MON130", "warning", "a job that runs twice", **alone(*both_insert(9))),
    fires("MON128", "warning", "one of a hundred documents", **alone(*killed(12))),
]  # fmt: skip
MONGO_USE_NEAR_MISSES: list[Scenario] = [
    silent("MON131", "nineteen documents", **alone(*walks(19, 1), *walks(19, 1.5, "b"))),
    silent("MON131", "one run after the other", **alone(*walks(40, 1), *walks(40, 12, "b"))),
    silent("MON131", "two stages of one process", **alone(
        *walks(40, 1, values="paid"), *walks(40, 1.1, values="sent", **_SECOND),
        *looks_for_work("new"), *looks_for_work("paid", **_SECOND))),
    silent("MON131", "counters that all add to, as it happens", **alone(
        *walks(40, 1), *(row | {"document_ids": [n * 17 % 40], "literals_id": f"same{n * 17 % 40}"}
                         for n, row in enumerate(walks(40, 1.1, **_SECOND))))),
    silent("MON132", "it waits for a second", **alone(opened(0.5, tailable=True), *follows(80, 1, await_time_ms=1000))),
    silent("MON132", "forty cursors that wait long", **alone(*follows(80, 0.025, 40, await_time_ms=1000))),
    silent("MON132", "news come all the time", **alone(*follows(80, 0.02, documents_returned=3))),
    silent("MON132", "it opens a cursor on nothing once a second", **alone(*nothing(50, 1, tailable=True))),
    silent("MON119", "a probe once a second", **alone(*beside_work("ping", 60))),
    silent("MON119", "a ping for each fourth find", **alone(*beside_work("ping", 40, work=160, every=0.1))),
    silent("MON118", "a lease that another one holds, each second", **alone(*updates(40, shape=_LEASE))),
    silent("MON118", "nineteen", **alone(*updates(19))),
    silent("MON118", "one of five changes something", **alone(
        *updates(20), *updates(5, n=1, n_modified=1, literals_id="new", flow="b"))),
    silent("MON118", "upserts that find their document", **alone(*updates(40, n=1, shape=_UPSERTS))),
    silent("MON118", "upserts that insert it", **alone(*updates(40, n=1, upserted=1, shape=_UPSERTS))),
    silent("MON118", "a worker that looks once a second", **alone(*updates(60, 1, _DUE))),
    silent("MON118", "a queue that is empty, once a second", **alone(*many(60, "findAndModify", 1, n=0))),
    silent("MON118", "a state that is written again every second", **alone(*updates(60, 1, n=1, literals_id="same"))),
    silent("MON118", "without replies", ("MON123", "info"), **alone(
        *updates(40, unacknowledged=True, status="one_way"))),
    silent("MON119", "a worker that looks once a second", **alone(*nothing(60, 1, literals_id="same"))),
    silent("MON119", "it looks before it inserts", **alone(*nothing(40, 1), *inserts(40, 1, flow="b"))),
    silent("MON119", "half of them find something", **alone(*nothing(30, 0.05), *many(30, every=0.05, flow="b"))),
    silent("MON119", "a change stream", **alone(*nothing(60, 0.05, literals_id="same", tailable=True))),
    silent("MON119", "forty-nine", **alone(*same(49, 0.12))),
    silent("MON119", "for two seconds", **alone(*same(80))),
    silent("MON119", "a pool that fills", **alone(
        *(row | {"flow_id": f"f{n}"} for n, row in enumerate(same(80, 0.1))))),
    silent("MON119", "four times a second", **alone(*same(80, 0.25))),
    silent("MON119", "somebody writes there", **alone(
        *same(80, 0.1), command(1.5, "insert", n=1, documents_sent=1, flow="b", app_name="stock"))),
    silent("MON119", "createIndexes at the start", **alone(
        *many(60), *(command(0.5 + n / 50, "createIndexes") for n in range(15)))),
    silent("MON119", "an exporter that does nothing else", **alone(*(command(1 + n, "collStats") for n in range(60)))),
    silent("MON119", "lists of collections once in a while", **alone(
        *many(400, every=0.15), *(command(1 + n * 5, "listCollections") for n in range(12)))),
    silent("MON119", "a count now and then", **alone(
        *many(60, documents_returned=20), *many(25, "count", 2, flow="b", shape_id="c"))),
    silent("MON120", "thirty-nine", **alone(*inserts(39))),
    silent("MON120", "ninety-nine updates", **alone(*updates(99, 0.003, n=1, n_modified=1))),
    silent("MON120", "users of a slow disk", **alone(*inserts(60, 0.08, took_ms=30))),
    silent("MON120", "events that come by themselves", **alone(*inserts(100, 0.1))),
    silent("MON120", "a producer that rests after each", **alone(*inserts(60, 0.05, took_ms=30))),
    silent("MON120", "it reads before each", **alone(*(
        row for n in range(100) for row in (
            command(1 + n / 50, "aggregate", 8, query_shape='{"pipeline":[]}'),
            command(1.009 + n / 50, "insert", 10, documents_sent=1, n=1))))),
    silent("MON120", "batches", **alone(*inserts(100, documents_sent=20, n=20))),
    silent("MON120", "others insert many, it inserts seldom", **alone(
        *inserts(60, 1), *inserts(9, 5, documents_sent=50, n=50, app_name="stock", flow="b"))),
    silent("MON121", "sessions are used again", **alone(
        *(row | {"lsid": f"s{n % 9}"} for n, row in enumerate(many(60))))),
    silent("MON121", "a session for each connection", **alone(
        *(row | {"lsid": f"s{n}", "flow_id": f"f{n}"} for n, row in enumerate(many(30))))),
    silent("MON122", "thirty-one", **alone(*rises(31, 2, 40))),
    silent("MON122", "it does not double", **alone(*rises(80, 20, 30))),
    silent("MON122", "documents to insert that are larger", **alone(*(
        row | {"command": "insert"} for row in rises(80, 1_000, 90_000, "request_bytes")))),
    silent("MON122", "inserts that take longer", **alone(*(row | {"command": "insert"} for row in rises(80, 2, 40)))),
    silent("MON122", "noise", **alone(*rises(80, 0.2, 1.8))),
    silent("MON122", "everything at this server gets slower", **alone(
        *rises(80, 2, 40), *(
            row | {"shape_id": f"s{n}", "exchange_id": f"{n}{row['exchange_id']}"}
            for n in range(3) for row in rises(80, 2, 40)))),
    silent("MON122", "up and down", **alone(*(
        row | {"latency_ms": 2 + n % 16} for n, row in enumerate(rises(80, 2, 40))))),
    silent("MON123", "it goes on without order", ("MON102", "info"), **alone(
        stopped_insert(1) | {"n": 9, "write_errors": 1})),
    silent("MON123", "it sends the rest again", ("MON102", "info"), **alone(
        stopped_insert(1), command(2, "insert", n=6, documents_sent=6, document_ids=[4, 5, 6, 7, 8, 9]))),
    silent("MON123", "in a transaction", ("MON102", "info"), **alone(
        stopped_insert(1, **TRANSACTION), *_ROUND)),
    silent("MON123", "w: 0, and deleted before it is looked for", **alone(
        unread(1, 7), command(1.5, "delete", n=1, documents_sent=1),
        command(2, document_ids=[7], documents_returned=0, cursor_exhausted=True))),
    silent("MON123", "w: 0 and found", **alone(unread(1, 7), command(2, document_ids=[7], documents_returned=1))),
    silent("MON123", "w: 0 with another _id", **alone(
        command(1, "insert", n=1, documents_sent=1, document_ids=[7]), unread(2, 8))),
    silent("MON124", "nineteen", **alone(*two_speeds(60, count=19))),
    silent("MON124", "four times", **alone(*two_speeds(60, 15))),
    silent("MON124", "a few ms", **alone(*two_speeds(9, 1))),
    silent("MON124", "alone", **alone(*many(60, took_ms=60))),
    silent("MON125", "another document", ("MON102", "info"), **alone(*held(1.5, 2, document_ids=[8]))),
    silent("MON125", "it ended before", ("MON102", "warning"), **alone(
        *(row | ({"ts": at(30), "exchange_id": "z"} if row["error_code"] == 112 else {}) for row in held(1.5, 1)))),
    silent("MON126", "it reads again before it writes", **alone(*written_back(3, between=False))),
    silent("MON126", "the server reckons", **alone(
        *written_back(3, shape='{"updates":[{"q":{"_id":"?number"},"u":{"$inc":{"x":"?number"}}}]}'))),
    silent("MON126", "another document", **alone(*written_back(3, document_ids=[8]))),
    silent("MON126", "it was refused", **alone(*written_back(3, n=0, n_modified=0))),
    silent("MON127", "a driver that takes it", **alone(*old_server(4, 9, driver_version="4.6.0"))),
    silent("MON127", "three, and a command", **with_commands(says_hello_only(3), command(9, flow="h2"))),
    silent("MON127", "two connections", **says_hello_only(2)),
    silent("MON127", "a command may be missing", **says_hello_only(4, gap_bytes=154)),
    silent("MON127", "a probe that asks by hello", **says_hello_only(9, lsid="s1")),
    silent("MON127", "a probe that ends its session", **with_commands(
        says_hello_only(9), command(8, "endSessions", flow="h1"), command(2, flow="w", app_name="stock"))),
    silent("MON127", "a driver that asks again and again", **with_commands(
        says_hello_only(9, age_s=15), *(
            row | {"exchange_id": f"again{n}", "ts": at(11 + 5 * n)}
            for n, row in enumerate(says_hello_only(9)["mongo_commands"])), command(2, flow="w", app_name="stock"))),
    silent("MON127", "it works at another member", **with_commands(
        says_hello_only(9), command(2, flow="w", server_address="10.3.0.10"), command(2, flow="x", app_name="stock"))),
    silent("MON127", "a probe without a driver", **with_commands(
        says_hello_only(9, driver=None, app_name=None), command(2, flow="w", app_name="stock"))),
    silent("MON127", "the set has other hosts", **with_commands(
        says_hello_only(4, advertised_hosts="mongo-0:27017", set_name="rs0", server_role="primary"),
        command(2, flow="w", app_name="stock"))),
    silent("MON127", "it works", **alone(*old_server(4), command(60))),
    silent("MON127", "nobody knows the driver", **alone(*old_server(4, driver="mongoc"))),
    silent("MON129", "both insert both", **alone(*(
        row | {"document_shape": f'{{"price":"{"?string" if n % 2 else "?number"}"}}'}
        for name in ("billing", "stock") for n, row in enumerate(inserts(20, 1, app_name=name, flow=name))))),
    silent("MON129", "a field of its own", **alone(*(
        row | {"document_shape": f'{{"{name}":"?string"}}'}
        for name in ("billing", "stock") for row in inserts(20, 1, app_name=name, flow=name)))),
    silent("MON129", "both find something", **alone(*typed("?string", "?number"))),
    silent("MON129", "of two nobody knows who is right", **alone(*(
        row | {"command": "update", "query_shape": f'{{"updates":[{{"q":{{"a":"?number"}},"u":{{"$set":{kind}}}}}]}}'}
        for row in typed("?string", "?number") if row["app_name"] != "mail"
        for kind in ['{"x":"?string"}' if row["shape_id"] == "x" else '{"x":"?number"}']))),
    silent("MON129", "the same type", **alone(*typed("?number", "?number"))),
    silent("MON129", "four times", **alone(*typed("?string", "?number", count=4))),
    silent("MON129", "it uses both", **alone(
        *typed("?string", "?number"),
        *many(9, query_shape='{"filter":{"customer":"?number"}}', shape_id="y", flow="n"))),
    silent("MON129", "null", **alone(*typed("?null", "?number"))),
    silent("MON129", "a range and a value", **alone(*typed('?number', '?number', part="query"))),
    silent("MON130", "four times", **alone(*both_insert(4))),
    silent("MON130", "the same client", **alone(*both_insert(9, client_address="10.3.0.1", app_name="billing"))),
    silent("MON130", "another document", **alone(*both_insert(9, document_ids=[99]))),
    silent("MON130", "a few of many", **alone(
        *both_insert(9), *(
            row | {"document_ids": [500 + n], "documents_sent": 1, "client_address": "10.3.0.2", "app_name": "stock"}
            for n, row in enumerate(inserts(30, 1, flow="m"))))),
    silent("MON128", "nine", **alone(*killed(9))),
    silent("MON128", "read on", **alone(*killed(12, more=1))),
    silent("MON128", "small batches", **alone(*killed(12, documents=5))),
]  # fmt: skip
