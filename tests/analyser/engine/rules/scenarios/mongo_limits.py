"""Scenarios of the rules about limits of MongoDB's servers, and about what applications do to each other."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row, at
from tests.analyser.engine.rules.scenarios.build_mongo import alone, command, failed, flow_row, hello
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

_SECOND = {"client_address": "10.3.0.2", "app_name": "stock", "flow": "b"}
_THIRD = {"client_address": "10.3.0.3", "app_name": "mail", "flow": "c"}
_Rows = dict[str, list[Row]]


def reads(count: int, start: float, found: int, every: float = 0.5, **more: Any) -> list[Row]:
    """Finds of the second application."""
    known = {"documents_returned": found, "cursor_exhausted": True, "literals_id": "7"}
    return [command(start + n * every, **{**_SECOND, **known, **more}) for n in range(count)]


def dropped(after: int = 0, name: str = "dropDatabase", **more: Any) -> list[Row]:
    """Somebody drops what the second application reads; after: what its finds return then."""
    known: dict[str, Any] = {"collection": None} if name == "dropDatabase" else {}
    return [*reads(12, 1, 1), command(8, name, **{**known, **more}), *reads(12, 9, after)]


def collections(count: int, each: int = 1, names: int = 0, every: float = 0.2, **more: Any) -> list[Row]:
    """Inserts into one collection after the other; names: so many, in turn."""
    return [
        command(
            1 + n * every + i * every / 10, "insert", documents_sent=1, n=1, literals_id=None, **more,
            collection=f"c{n % (names or count)}", shape_id=f"s{n % (names or count)}",
        )
        for n in range(count) for i in range(each)
    ]  # fmt: skip


def limit(holds: int = 30, others: int = 4, sent_away: int = 8, late: int = 0) -> _Rows:
    """A server that takes no more. holds: connections of the first client; late: that it takes afterwards."""
    taken = [flow_row(f"h{n}", 100, 1 + n / 100) for n in range(holds)]
    taken += [flow_row(f"o{n}", 100, 2, client_address="10.3.0.2") for n in range(others)]
    away = [
        flow_row(f"x{n}", 10 + n, 10 + n, client_address="10.3.0.3", closed_by="server", ts_closed=at(10.01 + n),
                 bytes_to_client=0)
        for n in range(sent_away)
    ]  # fmt: skip
    taken += [flow_row(f"l{n}", 100, 40, client_address="10.3.0.2") for n in range(late)]
    return {"flows": [*taken, *away], "mongo_commands": [command(3, flow="h0"), command(3, flow="o0", **_SECOND_HOST)]}


def slow_since(after_ms: float, before_ms: float = 5) -> list[Row]:
    """Finds before and after somebody else drops an index."""
    known = {"documents_returned": 1, "cursor_exhausted": True}
    return [
        *(command(1 + n / 2, "find", before_ms, literals_id=f"{n:08x}", **known) for n in range(12)),
        command(8, "dropIndexes", **{**_SECOND, "query_shape": None}),
        *(command(9 + n, "find", after_ms, literals_id=f"{n:08x}", **known) for n in range(12)),
    ]


_SECOND_HOST = {"client_address": "10.3.0.2", "app_name": "stock"}


def rests(count: int, rest_s: float = 3, spread_s: float = 0.0, at_s: float | None = None, by: str = "server") -> _Rows:
    """Connections with a find each that are closed after a rest. at_s: all at once then."""
    starts = [1 + 5.0 * n for n in range(count)]
    ends = [start + 0.02 + rest_s + spread_s * n if at_s is None else at_s for n, start in enumerate(starts)]
    return {
        "mongo_commands": [
            row
            for n, start in enumerate(starts)
            for row in (hello(start + 0.001, flow=f"r{n}"), command(start + 0.01, flow=f"r{n}"))
        ],
        "flows": [
            flow_row(f"r{n}", end, start, closed_by=by, ts_closed=at(end))
            for n, (start, end) in enumerate(zip(starts, ends, strict=True))
        ],
    }


def in_databases(first: str, second: str = "shop", third: str = "shop", shape: str = '{"a":"?number"}') -> list[Row]:
    """Three applications that insert into orders, each in a database."""
    known = {"documents_sent": 1, "n": 1, "literals_id": None, "document_shape": '{"a":"?number"}'}
    return [
        command(1 + n, "insert", **{**known, **who, "database": database})
        for who, database in (({"document_shape": shape}, first), (_SECOND, second), (_THIRD, third))
        for n in range(15)
    ]


_STATUS = {"database": "admin", "collection": None, "query_shape": None}
MONGO_LIMITS_FIRES: list[Scenario] = [
    fires("MON138", "warning", "a query is slow since", **alone(*slow_since(300))),
    fires(
        "MON102",
        "warning",
        "an index is there by another name, and it does not start",
        **alone(*(failed(5 * n, 85, "createIndexes") for n in range(1, 8))),
    ),
    fires("MON133", "warning", "a database that somebody reads", **alone(*dropped())),
    fires("MON133", "warning", "a collection", **alone(*dropped(name="drop"))),
    fires(
        "MON133",
        "warning",
        "all its documents",
        **alone(*dropped(name="delete", n=400, query_shape='{"deletes":[{"q":{},"limit":0}]}')),
    ),
    fires("MON134", "warning", "one for each visitor", **alone(*collections(80))),
    fires("MON135", "warning", "one client holds nearly all", **limit()),
    fires("MON136", "warning", "a proxy closes what rests", **rests(12)),
    fires("MON136", "warning", "a proxy whose timer is coarse", **rests(12, spread_s=0.01)),
    fires("MON137", "warning", "no database in the settings", **alone(*in_databases("test"))),
    fires(
        "MON119",
        "warning",
        "an agent asks ten times a second",
        **alone(*(command(1 + n / 10, "serverStatus", **_STATUS) for n in range(80))),
    ),
]
MONGO_LIMITS_NEAR_MISSES: list[Scenario] = [
    silent("MON138", "nothing changes", **alone(*slow_since(6))),
    silent("MON138", "it was slow before", **alone(*slow_since(300, before_ms=250))),
    silent("MON138", "slow a while later", **alone(*slow_since(6), *reads(12, 40, 1), command(50, "find", 300))),
    silent("MON102", "an index is there by another name, and it goes on", ("MON102", "info"), **alone(
        *(failed(5 * n, 85, "createIndexes") for n in range(1, 8)), command(50))),
    silent("MON103", "a command that is sent when the server has closed",
           **alone(command(9, took_ms=None), end=8, closed_by="server", ts_closed=at(8))),
    silent("MON133", "it is filled again", **alone(*dropped(after=1))),
    silent("MON133", "nothing was there before", **alone(*reads(12, 1, 0), command(8, "drop"), *reads(12, 9, 0))),
    silent("MON133", "another collection", **alone(*dropped(name="drop", collection="old"))),
    silent("MON133", "its own", **alone(*(row | {"client_address": "10.3.0.1", "app_name": "billing"}
                                          for row in dropped()))),
    silent("MON133", "a delete by a filter", **alone(
        *dropped(name="delete", n=400, query_shape='{"deletes":[{"q":{"a":"?number"},"limit":0}]}'))),
    silent("MON134", "forty", **alone(*collections(40))),
    silent("MON134", "a fixed set in turn", **alone(*collections(240, names=60))),
    silent("MON134", "a restore", **alone(*collections(60, each=8))),
    silent("MON135", "four are sent away", **limit(sent_away=4)),
    silent("MON135", "more were taken later", **limit(late=20)),
    silent("MON135", "nobody holds most", **limit(holds=15, others=15)),
    silent("MON136", "nine", **rests(9)),
    silent("MON136", "a server that is stopped", **rests(12, at_s=70)),
    silent("MON136", "after different times", **rests(12, spread_s=0.4)),
    silent("MON136", "the client closes them", **rests(12, by="client")),
    silent("MON137", "all work in test", **alone(*in_databases("test", "test", "test"))),
    silent("MON137", "other documents", **alone(*in_databases("test", shape='{"b":"?string"}'))),
    silent("MON137", "one other application only", **alone(*in_databases("test", "shop", "stock"))),
    silent("MON119", "an agent asks once a second", **alone(
        *(command(1 + n, "serverStatus", **_STATUS) for n in range(80)))),
]  # fmt: skip
