"""NET103 retry-without-back-off: a client tries again and again without waiting longer.

Finds
    Clients whose connections to one server are refused, or whose logins are, many times with hardly a pause.

Why it matters
    A thousand clients that try ten times a second keep a server that comes back from coming back, and fill the logs of
    both. It also hides what was wrong first.

How it decides
    20 failed attempts or more (attempts_least) of one client at one server: a SYN that is answered by RST, by
    address; a login that is refused (Kafka and MongoDB) or a CONNECT (MQTT), by client id or application. The median
    pause between them is less than half a second (pause_s; Java's Kafka clients wait up to a second by default), and
    the pauses do not grow: that of the last third of them is less than twice that of the first third (growth_below).

    Behind one address (NAT, a proxy) there may be several clients. A refused SYN has no client id: where several ids
    had connections from this address at that time, each attempt is taken for one of theirs in turn, so that the pause
    of each is the time until as many attempts later as there are ids. A connection that shows no id (it began before
    the capture, or is encrypted) may be one more client's; those of MongoDB together are one, as a pool. Logins and
    CONNECTs of clients that stay below the limit are put together: of three clients or more with three attempts or more
    each those that do not wait, by their own pauses; of those with fewer (a client id made anew for each attempt) all,
    where the pauses are even (nine in ten at most twice the median), as those of one program are and those of a fleet
    that comes back are mostly not: that is info with low confidence. What a whole fleet does when a server is back is
    NET104's.

False alarms
    Several clients behind one address of which no connection is in the capture, each of which waits as it should. A
    port scanner.

What it cannot tell
    Which of several clients behind one address it was, where none of them was ever connected in the capture. Logins
    that are refused inside TLS.

References
    reconnect.backoff.ms and reconnect.backoff.max.ms of Kafka clients; RFC 9293 has no rule for applications; AWS
    Architecture Blog, "Exponential Backoff And Jitter".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_text, who_is
from wirewitness.analyser.base.times import NS_PER_S, seconds_text
from wirewitness.analyser.base.titles import first_of, who_title
from wirewitness.analyser.base.words import names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.flow_rows import client_names, named_by
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule

LOGINS = "kafka_authentications"
# Attempts from which on a client of several behind one address is judged by its own pauses.
_OWN_PAUSES = 3
# Fewer at one address are told one by one, by the rules of their protocols.
_SEVERAL = 3
# Who was connected so long before, or was so soon after, is one of those who try.
_BESIDE_NS = 10 * NS_PER_S
# One client has many connections.
_POOLED = "mongo"
_SASL = "command IN ('saslStart', 'saslContinue', 'authenticate')"


class _Behind(NamedTuple):
    """Who is behind an address. ids: those that are known; clients: how many there may be."""

    ids: Sequence[str] = ()
    clients: int = 1


class _Attempts(NamedTuple):
    """Where attempts of one kind stand. name: the column that tells clients at one address apart."""

    table: str
    what: str
    name: str | None
    next_step: str


_WAIT = "then let the client wait longer after each failure, with jitter"
_KINDS = (
    _Attempts("flows", "connections are refused", None, f"Mend what is refused (TCP104); {_WAIT}."),
    _Attempts(
        LOGINS, "logins are refused", "client_id",
        f"Mend what is refused (KAF312); {_WAIT} (reconnect.backoff.max.ms in Kafka clients).",
    ),
    _Attempts(
        "mqtt_connections", "CONNECT is refused", "client_id",
        f"Mend what is refused (MQT101); {_WAIT} (the reconnect delay of the client library, with a maximum).",
    ),
    _Attempts(
        "mongo_commands", "logins are refused", "app_name",
        "Mend what is refused (MON102: user, password, authSource); then let the program wait longer after each "
        "failure, and make one client object instead of one for each attempt.",
    ),
)  # fmt: skip


def detect(
    frames: Frames, *, attempts_least: int = 20, pause_s: float = 0.5, growth_below: float = 2.0
) -> Iterator[Finding]:
    """For this address and server: its refused connections, else for each client its refused logins."""
    names = client_names(rows_of(frames["exchanges"]))
    for kind in _KINDS:
        rows = rows_of(frames[kind.table])
        clients = _by_client(rows, kind)
        found: list[Finding] = []
        for attempts in clients:
            behind = _behind(rows, attempts, names) if kind.table == "flows" else _Behind()
            pause = _pause(attempts, growth_below, behind.clients)
            if len(attempts) >= attempts_least and pause < pause_s:
                found.append(_finding(attempts, kind, pause, behind))
        if not found and kind.name is not None:
            found += _together(clients, kind, attempts_least, pause_s, growth_below)
        if found:
            yield from found
            return


def _together(
    clients: Sequence[list[Row]], kind: _Attempts, attempts_least: int, pause_s: float, growth_below: float
) -> Iterator[Finding]:
    """Clients of one address of which none alone reaches the limit."""
    several = [rows for rows in clients if len(rows) >= _OWN_PAUSES and _pause(rows, growth_below) < pause_s]
    if len(several) >= _SEVERAL and sum(map(len, several)) >= attempts_least:
        yield _of_several(several, kind, median(_pause(rows, growth_below) for rows in several))
        return
    once = _in_time(row for rows in clients if len(rows) < _OWN_PAUSES for row in rows)
    if len(once) >= attempts_least and (pause := _pause(once, growth_below)) < pause_s and _even(once):
        yield _of_several([[row] for row in once], kind, pause, is_once=True)


def _of_several(clients: Sequence[Sequence[Row]], kind: _Attempts, pause: float, *, is_once: bool = False) -> Finding:
    names = dict.fromkeys(str(rows[0]["name"]) for rows in clients if rows[0]["name"])
    behind = _Behind(list(names), len(names))
    return _finding(_in_time(row for rows in clients for row in rows), kind, pause, behind, is_once=is_once)


def _in_time(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["ts_begin"])


def _by_client(rows: Sequence[Row], kind: _Attempts) -> list[list[Row]]:
    """The failed attempts of each client, in the order of time, with the time and the user under one name each."""
    users = {row["flow_id"]: row["user_name"] for row in rows if row.get("user_name") is not None}
    column = "ts_first" if kind.table == "flows" else "ts"
    clients: dict[str | None, list[Row]] = {}
    for row in rows:
        if row.get("status", "error") == "error" and row.get("handshake", "refused") == "refused":
            name = None if kind.name is None else row[kind.name]
            own = {"ts_begin": row[column], "user_name": users.get(row["flow_id"]), "name": name}
            clients.setdefault(name, []).append({**row, **own})
    return [_in_time(attempts) for attempts in clients.values()]


def _behind(flows: Sequence[Row], attempts: Sequence[Row], names: Mapping[str, str]) -> _Behind:
    """Clients that were connected from this address when the refusals began, else those that came back behind them."""
    first, last = attempts[0]["ts_begin"], attempts[-1]["ts_begin"]
    there = [row for row in flows if row["handshake"] in (None, "complete")]
    before = [row for row in there if row["ts_first"] < first and row["ts_last"] >= first - _BESIDE_NS]
    after = [
        row for row in there
        if last < row["ts_first"] <= last + _BESIDE_NS and row["ts_last"] - row["ts_first"] >= _BESIDE_NS // 2
    ]  # fmt: skip
    ids = [sorted({names[row["flow_id"]] for row in rows if row["flow_id"] in names}) for rows in (before, after)]
    nameless = [row["protocol"] for row in before or after if row["flow_id"] not in names]
    pools = nameless.count(_POOLED)
    clients = len(ids[0] if before else ids[1]) + len(nameless) - max(pools - 1, 0)
    return _Behind(ids[0] or ids[1], max(clients, 1))


def _even(rows: Sequence[Row]) -> bool:
    """Do they come as those of one program: nine pauses in ten at most twice the median?"""
    pauses = sorted(second["ts_begin"] - first["ts_begin"] for first, second in pairwise(rows))
    return bool(pauses[len(pauses) * 9 // 10] <= 2 * median(pauses))


def _pause(rows: Sequence[Row], growth_below: float, clients: int = 1) -> float:
    """The median pause of each client in s, if they try in turn; for ever where pauses grow, or where there is none."""
    pauses = [
        (later["ts_begin"] - row["ts_begin"]) / NS_PER_S for row, later in zip(rows, rows[clients:], strict=False)
    ]
    if not pauses:
        return math.inf
    third = max(len(pauses) // 3, 1)
    first, last = median(pauses[:third]), median(pauses[-third:])
    return median(pauses) if last < growth_below * max(first, 0.001) else math.inf


def _finding(rows: Sequence[Row], kind: _Attempts, pause: float, behind: _Behind, *, is_once: bool = False) -> Finding:
    """behind: the clients, where there are several at this address. is_once: each of them tried once or twice."""
    first, last = rows[0], rows[-1]
    server = server_text(first)
    lasted = last["ts_begin"] - first["ts_begin"]
    name = first["name"] or next((row["client_id"] for row in rows if row.get("client_id")), None)
    user = next((row["user_name"] for row in rows if row["user_name"]), None)
    address = first["client_address"] or "(unknown address)"
    if behind.clients > 1:
        shown = names_text([printable(one, 60) for one in behind.ids], 4)
        are_known = len(behind.ids) == behind.clients
        many = f"{behind.clients} client ids" if are_known else f"Up to {behind.clients} clients"
        who, tries, name = f"{many} at {address}{f' ({shown})' if shown else ''}", "try", None
    else:
        who = sentence_start(who_is(name, address, most=120))
        if not name and behind.ids:  # of a connection besides the refused ones
            who += f" (where {printable(behind.ids[0], 60)} runs)"
        tries = "tries"
    as_user = f" as user {printable(user, 120)}" if user else ""
    whose = "their" if tries == "try" else "its"
    of_each = " between them" if is_once else " of each" if tries == "try" else ""
    either = " One program makes an id for each attempt, or several come one after the other." if is_once else ""
    return RULE.finding(
        severity="info" if is_once else "warning",
        confidence="low" if is_once else "high",
        subject={"client": first["client_address"], "server": server, **({"name": name} if name else {})},
        title=(
            f"{len(rows)} attempts without back-off: "
            f"{first_of(behind.ids) if behind.clients > 1 and behind.ids else who_title(name, address)} to {server}"
        ),
        sentence=(
            f"{who} {tries} {len(rows)} times in {seconds_text(lasted)} to get into {server}{as_user} although {whose} "
            f"{kind.what}. The median pause{of_each} is {pause * 1000:,.0f} ms, and it does not grow.{either}"
        ),
        next_step=kind.next_step,
        proof=Proof(
            first["ts_begin"],
            last["ts_begin"],
            (_evidence(row) for row in rows),
        ),
        numbers={
            "address": first["client_address"],
            "server": server,
            "where": server,
            "attempts": len(rows),
            "median_pause_ms": round(pause * 1000, 3),
            "per_minute": round(60 * NS_PER_S * (len(rows) - 1) / max(lasted, 1), 1),
            "user_name": user,
            "requests_refused": len(rows),
            "clients": [
                {"address": first["client_address"], "client_id": one}
                for one in (behind.ids[:20] if behind.clients > 1 else [name])
            ],
        },
    )


def _evidence(row: Row) -> Evidence:
    packet = next(
        (row[name] for name in ("first_packet", "packet", "request_packet") if row.get(name) is not None), None
    )
    return Evidence(row.get("file"), packet, row.get("exchange_id"))


_SIDES = ("client_address", "server_address", "server_port")
_OFTEN = {"flows": "count(*) FILTER (handshake = 'refused') >= 20"}
_NOT_ACCEPTED = "NOT accepted AND error_code <> 0"
# All connections of addresses that are refused often: those that were open tell who is there.
_REFUSED_OFTEN = (
    f"({', '.join(_SIDES)}) IN (SELECT ({', '.join(_SIDES)}) FROM flows "
    f"WHERE handshake = 'refused' GROUP BY {', '.join(_SIDES)} HAVING count(*) >= 20)"
)

RULE = Rule(
    code="NET103",
    question="repeated",
    name="retry-without-back-off",
    severity="warning",
    confidence="high",
    reads={
        "flows": ("ts_first", "ts_last", "flow_id", "protocol", "handshake", "file", "first_packet"),
        LOGINS: ("ts", "exchange_id", "client_id", "flow_id", "user_name"),
        "mqtt_connections": ("ts", "exchange_id", "client_id", "flow_id", "user_name", "file", "packet"),
        "mongo_commands": ("ts", "exchange_id", "app_name", "flow_id", "user_name", "status", "file", "request_packet"),
        "exchanges": ("ts", "flow_id", "client_id"),
    },
    partition_by=_SIDES,
    signs={
        **_OFTEN,
        LOGINS: f"count(*) FILTER ({_NOT_ACCEPTED}) >= 20",
        "mqtt_connections": "count(*) FILTER (error_code <> 0) >= 20",
        "mongo_commands": f"count(*) FILTER ({_SASL} AND status = 'error') > 0",
    },
    detect=detect,
    rows={
        "flows": f"duplicate_of IS NULL AND {_REFUSED_OFTEN}",
        "exchanges": named_by("exchanges", _REFUSED_OFTEN),
        LOGINS: _NOT_ACCEPTED,
        "mqtt_connections": "error_code <> 0",
        # The user stands in an earlier command of the connection than the refusal.
        "mongo_commands": f"({_SASL} AND status = 'error') OR (user_name IS NOT NULL AND flow_id IN (SELECT flow_id "
        f"FROM mongo_commands WHERE {_SASL} AND status = 'error') AND status = 'ok')",
    },
    suspects=" UNION ALL ".join(
        f"SELECT {', '.join(_SIDES)} FROM r_{kind.table} GROUP BY ALL HAVING {_OFTEN.get(kind.table, 'count(*) >= 20')}"
        for kind in _KINDS
    ),
)
