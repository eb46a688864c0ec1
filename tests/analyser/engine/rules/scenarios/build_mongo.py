"""Rows of MongoDB for scenarios: commands, replies, connections, and what comes of several."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row, at

CLIENT = {
    "client_address": "10.3.0.1",
    "client_port": 40_000,
    "server_address": "10.3.0.9",
    "server_port": 27017,
}
BY_ID = '{"filter":{"_id":"?number"}}'
MIB = 1 << 20
TRANSACTION = {"lsid": "s1", "txn_number": 1, "autocommit": False, "start_transaction": True}


def command(seconds: float, name: str = "find", took_ms: float | None = 2, flow: str = "a", **more: Any) -> Row:
    """An answered command on shop.orders; took_ms None: not answered."""
    place = round(seconds * 1_000_000)
    answer = None if took_ms is None else at(seconds + took_ms / 1000)
    row = {
        **CLIENT,
        "exchange_id": f"{flow}c{place}",
        "flow_id": flow,
        "ts": at(seconds),
        "ts_response": answer,
        "ts_last_response": answer,
        "latency_ms": took_ms,
        "command": name,
        "opcode": "OP_MSG",
        "database": "shop",
        "collection": "orders",
        "query_shape": BY_ID if name == "find" else None,
        "shape_id": f"shape-{name}",
        "literals_id": "00000001" if name == "find" else None,
        "status": "unanswered" if took_ms is None else "ok",
        "ok": None if took_ms is None else True,
        "error_code": None if took_ms is None else 0,
        "awaitable": False,
        "replies": 0 if took_ms is None else 1,
        "request_bytes": 200,
        "response_bytes": None if took_ms is None else 300,
        "app_name": "billing",
        "driver": "PyMongo",
        "driver_version": "4.20.0",
        "request_id": place,
        "file": "incident.pcapng",
        "request_packet": place // 1000 + 1,
        "response_packet": None if took_ms is None else place // 1000 + 2,
    }
    return row | more


def failed(seconds: float, code: int, name: str = "find", **more: Any) -> Row:
    """A command that the server refused."""
    return command(
        seconds, name, **{"status": "error", "ok": False, "error_code": code, "error_name": f"Error{code}", **more}
    )


def failed_write(seconds: float, *codes: int, **more: Any) -> Row:
    """An insert of which single documents were refused."""
    named = {"write_errors": len(codes), "write_error_codes": list(codes), "write_error_names": "Named"}
    return command(seconds, "insert", **{"status": "error", "error_code": codes[0], **named, **more})


def hello(seconds: float, took_ms: float | None = 1, flow: str = "a", **more: Any) -> Row:
    """The handshake, or another hello."""
    return command(seconds, "hello", took_ms, flow, **{"database": "admin", "collection": None, **more})


def awaited(seconds: float, took_ms: float | None = 1, flow: str = "a", **more: Any) -> Row:
    """A hello of the streaming protocol, of which the server announced another answer."""
    return hello(
        seconds,
        took_ms,
        flow,
        **{"awaitable": True, "await_time_ms": 10_000, "latency_ms": None, "exhaust": took_ms is not None, **more},
    )


def flow_row(flow: str = "a", end: float = 100, start: float = 0, **more: Any) -> Row:
    """A whole connection that is open until the capture ends."""
    row = {
        **CLIENT,
        "flow_id": flow,
        "protocol": "mongo",
        "file": "incident.pcapng",
        "first_packet": 1,
        "ts_first": at(start),
        "ts_last": at(end),
        "observed_until": at(end),
        "packets": 400,
        "data_segments": 200,
        "bytes_to_server": 9000,
        "bytes_to_client": 9000,
        "handshake_seen": True,
        "handshake": "complete",
        "handshake_ms": 0.3,
        "gap_bytes": 0,
        "retransmitted_segments": 0,
        "retransmitted_bytes": 0,
        "out_of_order_segments": 0,
        "truncated_packets": 0,
        "encrypted": False,
    }
    return row | more


def in_transaction(seconds: float, number: int = 1, name: str = "update", **more: Any) -> Row:
    """A command of a transaction of session s1."""
    return command(seconds, name, **{"lsid": "s1", "txn_number": number, "autocommit": False, **more})


def begun(seconds: float, number: int = 1, **more: Any) -> Row:
    """The first command of a transaction."""
    return in_transaction(seconds, number, **{"start_transaction": True, **more})


def opened(seconds: float, **more: Any) -> Row:
    """A find whose cursor stays open."""
    return command(seconds, **{"cursor_id": 77, "cursor_exhausted": False, "documents_returned": 101, **more})


def get_more(seconds: float, took_ms: float | None = 2, **more: Any) -> Row:
    """A getMore on that cursor, which stays open."""
    known = {"cursor_id": 77, "cursor_exhausted": False, "documents_returned": 101}
    return command(seconds, "getMore", took_ms, **{**known, **more})


def run(count: int, every: float = 0.01, start: float = 1, **more: Any) -> list[Row]:
    """The same find with another value each time."""
    return [command(start + n * every, **{"literals_id": f"{n:08x}", **more}) for n in range(count)]


BY_SOME_IDS = '{"filter":{"_id":{"$in":["?number"]}}}'


def listing(seconds: float, documents: int, **more: Any) -> Row:
    """A find that returns so many documents."""
    shape = {"collection": "pages", "query_shape": '{"filter":{}}', "shape_id": "shape-list", "literals_id": "1"}
    return command(seconds, **(shape | {"documents_returned": documents, "cursor_exhausted": True} | more))


def loop(count: int, took_ms: float, pause_ms: float, start: float = 1, flows: str = "a", **more: Any) -> list[Row]:
    """Finds of which each begins so long after the answer to the last one, over these connections in turn."""
    step = (took_ms + pause_ms) / 1000
    known = {"documents_returned": 1, "cursor_exhausted": True}
    return [
        command(
            start + n * step, "find", took_ms, flows[n % len(flows)], **(known | {"literals_id": f"{n:08x}"} | more)
        )
        for n in range(count)
    ]


def uneven(count: int) -> list[Row]:
    """A loop on a host that gives it no time now and then."""
    draw, seconds, found = Random(count), 1.0, []
    for n in range(count):
        took_ms = draw.uniform(2, 16)
        found.append(command(seconds, "find", took_ms, literals_id=f"{n:08x}", documents_returned=1))
        seconds += (took_ms + draw.choice((0.5, 1, 8, 20, 45))) / 1000
    return found


def users(count: int, per_second: float, took_ms: float, **more: Any) -> list[Row]:
    """Finds of users who come by themselves, over the first connection of a pool that is free."""
    draw, seconds, busy, found = Random(count), 1.0, [0.0] * 20, []
    for n in range(count):
        seconds += draw.expovariate(per_second)
        free = next((place for place, until in enumerate(busy) if until <= seconds), 0)
        busy[free] = seconds + took_ms / 1000
        known = {"documents_returned": 1, "cursor_exhausted": True, "literals_id": f"{n:08x}"}
        found.append(command(seconds, "find", took_ms, f"u{free}", **(known | more)))
    return found


def pool(connections: int, took_ms: float, pause_ms: float, seconds: float, **more: Any) -> list[Row]:
    """Connections that are used without a pause, each with requests of its own."""
    step = (took_ms + pause_ms) / 1000
    return [
        command(1 + place / 1000 + n * step, "aggregate", took_ms, f"p{place}", query_shape='{"pipeline":[]}', **more)
        for place in range(connections)
        for n in range(int(seconds / step))
    ]


def late_now_and_then(connections: int, took_ms: float, seconds: float, one_of: int = 14) -> list[Row]:
    """A full pool on a busy host: of so many pauses one takes a few ms more."""
    draw, found = Random(connections), []
    for place in range(connections):
        now = 1.0
        while now < seconds:
            found.append(command(now, "aggregate", took_ms, f"p{place}", query_shape='{"pipeline":[]}'))
            now += (took_ms + draw.choice((7.0, *(1.0,) * (one_of - 1)))) / 1000
    return found


def seldom_slow(count: int, every: int, took_ms: float) -> list[Row]:
    """A hundred commands a second, one of so many of them slow."""
    return [command(1 + n / 100, took_ms=took_ms if n % every == every // 2 else 3) for n in range(count)]


def slow_for_a_while(count: int, first: int, last: int) -> list[Row]:
    """Ten commands a second, each second one of these slow."""
    return [command(1 + n / 10, took_ms=150 if first <= n < last and n % 2 else 3) for n in range(count)]


def half_busy(connections: int, took_ms: float, seconds: float) -> list[Row]:
    """Connections that rest for as long as they work on the average, each as it happens."""
    draw, found = Random(connections), []
    for place in range(connections):
        now = 1.0
        while now < seconds:
            found.append(command(now, "aggregate", took_ms, f"p{place}", query_shape='{"pipeline":[]}'))
            now += took_ms / 1000 * (1 + draw.expovariate(1))
    return found


def own_reads(count: int, pause_s: float, insert: Row | None = None, **more: Any) -> list[Row]:
    """Inserts, and after each a find by its _id that a secondary answers with nothing."""
    known = {"server_address": "10.3.0.10", "server_role": "secondary", "documents_returned": 0} | more
    return [
        row
        for n in range(1, count + 1)
        for row in (
            command(n, "insert", 1, n=1, **({"document_ids": [n, n + 50]} | (insert or {}))),
            command(n + 0.001 + pause_s, "find", 1, "s", **({"document_ids": [n]} | known)),
        )
    ]


def said_of_itself(role: str) -> Row:
    """What the member that `own_reads` asks says to somebody else."""
    return hello(0.5, flow="m", server_address="10.3.0.10", server_role=role, app_name="monitor")


def stood_still(seconds: float, flows: str = "abc", usual_ms: float = 2, **more: Any) -> list[Row]:
    """Requests of several applications, none of which is answered for so long, five seconds after the first."""
    until = 6 + seconds
    names = ("find", "count", "distinct")
    rows = []
    for place, flow in enumerate(flows):
        one = {"name": names[place], "flow": flow, "app_name": f"app-{flow}"} | more
        start = place / 1000
        before = [command(1 + start + n / 10, took_ms=usual_ms, **one) for n in range(50)]
        late = command(6.1 + start, took_ms=(until - 6.1) * 1000, **one)
        rows += [*before, late, *(command(until + 0.1 + start + n / 10, took_ms=usual_ms, **one) for n in range(9))]
    return rows


def small_batches(count: int, **more: Any) -> list[Row]:
    """A cursor that is read one document at a time, to its end."""
    gets = [get_more(1.1 + n / 10, **{"documents_returned": 1, **more}) for n in range(count)]
    gets[-1] |= {"cursor_exhausted": True}
    return [opened(1, documents_returned=1), *gets]


def connections(per_minute: list[int], **more: Any) -> dict[str, list[Row]]:
    """So many short connections in each minute."""
    starts = [minute * 60 + n * 60 / count for minute, count in enumerate(per_minute) for n in range(count)]
    return {
        "mongo_commands": [hello(start, flow=f"n{start}", **more) for start in starts],
        "flows": [flow_row(f"n{start}", start + 1, start, closed_by="client") for start in starts],
    }


def jumped(per_minute: list[int]) -> dict[str, list[Row]]:
    """Such connections, and one more that a damaged clock puts centuries later."""
    found, late = connections(per_minute), 4e9
    found["mongo_commands"].append(hello(late, flow="late"))
    found["flows"].append(flow_row("late", late + 1, late, closed_by="client"))
    return found


def short_lives(count: int, every: float, lasts: float = 0.05, work: int = 1, **more: Any) -> dict[str, list[Row]]:
    """Connections of one application, each with hello, some finds and its end."""
    starts = [1 + n * every for n in range(count)]
    return {
        "mongo_commands": [
            row
            for n, start in enumerate(starts)
            for row in (
                hello(start + 0.001, flow=f"n{n}", **more),
                *(command(start + 0.01 + place / 100, flow=f"n{n}", **more) for place in range(work)),
                command(start + lasts - 0.005, "endSessions", 1, flow=f"n{n}", **more),
            )
        ],
        "flows": [
            flow_row(f"n{n}", start + lasts, start, closed_by="client", ts_closed=at(start + lasts))
            for n, start in enumerate(starts)
        ],
    }


def left_behind(count: int, every: float, work: int = 1, closed_at: float | None = None) -> dict[str, list[Row]]:
    """Connections of one application, each with hello and some finds, which stay open; closed_at: all at once then."""
    found = short_lives(count, every, 50, work)
    end = 1 + count * every + 10 if closed_at is None else closed_at
    closed = {} if closed_at is None else {"closed_by": "client", "ts_closed": at(closed_at)}
    return {
        "mongo_commands": [row for row in found["mongo_commands"] if row["command"] != "endSessions"],
        "flows": [flow_row(f"n{n}", end, 1 + n * every, **closed) for n in range(count)],
    }


def gives_up(
    count: int, wait_s: float = 0.3, took_ms: float | None = None, spread_s: float = 0.0
) -> dict[str, list[Row]]:
    """Connections of one application, each closed by it after that wait; took_ms: when the reply comes."""
    starts = [1 + n * (wait_s + 1) for n in range(count)]
    waits = [wait_s + spread_s * n for n in range(count)]
    late = took_ms is not None and took_ms > wait_s * 1000
    finds = [command(start + 0.01, took_ms=took_ms, flow=f"g{n}") for n, start in enumerate(starts)]
    return {
        "mongo_commands": [
            row
            for n, start in enumerate(starts)
            for row in (hello(start + 0.001, flow=f"g{n}"), finds[n])
        ],
        "exchanges": [
            {
                **{name: find[name] for name in ("exchange_id", "flow_id", "ts", "ts_response", "status")},
                "protocol": "mongo", "answer_due": True, "late": late,
            }
            for find in finds
        ],
        "flows": [
            flow_row(
                f"g{n}", start + waits[n], start, closed_by="client", ts_closed=at(start + waits[n]),
                observed_until=at(start + waits[n]),
            )
            for n, start in enumerate(starts)
        ],
    }  # fmt: skip


def hellos_of_set(count: int, hosts: str | None = "mongo-0:27017,mongo-1:27017", **more: Any) -> list[Row]:
    """Hellos, five seconds apart, to a member of a replica set that advertises these hosts."""
    said = {"set_name": hosts and "rs0", "advertised_hosts": hosts, "server_role": "primary"}
    return [hello(1 + 5 * n, **said, **more) for n in range(count)]


def of_a_set(seconds: float, hosts: str) -> Row:
    """What a member says to somebody else, who works."""
    return hello(seconds, flow="m", app_name="monitor", set_name="rs0", advertised_hosts=hosts, server_role="primary")


def only_hellos(
    count: int,
    hosts: str | None = "mongo-0:27017,mongo-1:27017",
    work: Iterable[Row] = (),
    more: Iterable[Row] = (),
) -> dict[str, list[Row]]:
    """The same, each on a connection of its own that the client closes. work: other commands; more: other flows."""
    rows = [row | {"flow_id": f"h{n}", "exchange_id": f"h{n}"} for n, row in enumerate(hellos_of_set(count, hosts))]
    flows = [flow_row(row["flow_id"], 2 + 5 * n, 1 + 5 * n, closed_by="client") for n, row in enumerate(rows)]
    return {"mongo_commands": [*rows, *work], "flows": [*flows, *more]}


def left_alone(count: int, every: float, end: float = 60, **more: Any) -> dict[str, list[Row]]:
    """Cursors of one shape that are opened and not read on."""
    return alone(*(opened(1 + n * every, cursor_id=100 + n, **more) for n in range(count)), end=end)


def remarked(code: str, severity: str = "error", **more: Any) -> dict[str, list[Row]]:
    """What the dissector says of a request."""
    remark = {
        "message_id": "ac5000000",
        "flow_id": "a",
        "direction": "client_to_server",
        "file": "incident.pcapng",
        "packet": 5001,
        "ts": at(5),
        "severity": severity,
        "group": "protocol",
        "code": code,
        "text": "what is wrong",
    }
    return {"mongo_commands": [command(5)], "expert_infos": [remark | more]}


def falls_silent(*rows: Row, others: float = 40, **flow: Any) -> dict[str, list[Row]]:
    """Commands on one connection, whose last packet comes at 2 s; others of its server go on until `others`."""
    last = {"end": 2, "observed_until": at(40)}
    return {
        "mongo_commands": list(rows),
        "flows": [flow_row(**last, **flow), flow_row("other", others, client_address="10.3.0.9")],
    }


def alone(*rows: Row, **flow: Any) -> dict[str, list[Row]]:
    """Commands on one connection."""
    return {"mongo_commands": list(rows), "flows": [flow_row(**flow)]}
