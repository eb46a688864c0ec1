"""Scenarios of the rules about how connections end: too many of one address, age, a client that gives up."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row, at
from tests.analyser.engine.rules.scenarios.kafka_connections import CLIENT, connection, waits
from tests.analyser.engine.rules.scenarios.kafka_producers import produced
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent


def turned_away(number: int, seconds: float, **more: Any) -> Row:
    """The broker closes it 10 ms after it was opened, without a response to the first request."""
    nothing = {"answered": 0, "work": 0, "bytes_to_client": 0, "bytes_to_server": 40, "acked_by_server": 40}
    asked = {"requests": 1, "unanswered": 1, "last_operation": "ApiVersions", "last_status": "unanswered"}
    return connection(number, seconds, 0.01, **{"closed_by": "server", "gap_bytes": 0, **nothing, **asked, **more})


def up(number: int, seconds: float, lasts: float | None = None, **more: Any) -> Row:
    """A connection that is answered to its end."""
    return connection(number, seconds, lasts, **{"gap_bytes": 0, "ts_last_from_server": at(60), **more})


def too_many(
    limit: int = 3, away: int = 6, times: tuple[float, ...] = (2, 9, 17, 26, 37, 48), **more: Any
) -> dict[str, list[Row]]:
    """An address with `limit` connections that go on, and others of it that the broker closes at once; one that is
    open for a time only makes room for another one later."""
    kept = [up(n, n / 5) for n in range(limit - 1)]
    room = [up(20, 1.0, 29.0, ts_last_from_server=at(30)), up(21, 31.5)]
    return {"kafka_connections": [*kept, *room, *(turned_away(40 + n, times[n], **more) for n in range(away))]}


def short_lived(
    lasts: tuple[float, ...] = (12.0, 12.1, 12.0, 12.3, 12.2),
    *,
    idle: float = 0.002,
    looks: tuple[float, ...] = (),
    how: str = "fin",
    pending: int = 1,
    login_ms: int | None = None,
    **more: Any,
) -> dict[str, list[Row]]:
    """Connections one behind the other that the server ends after so many seconds, and another client that goes on.
    looks: so much longer than `idle` each of them was idle."""
    closed, answers, logins, begin, least = [], [], [], 0.0, idle
    for number, seconds in enumerate(lasts):
        idle = least + (looks[number] if looks else 0.0)
        asked = {"ts_last_request": at(begin + seconds - idle), "last_status": "unanswered" if pending else "ok"}
        end = {"ts_last_from_server": at(begin + seconds - (how == "reset") * idle), "unanswered": pending}
        closed.append(up(number, begin, seconds, **{"closed_by": "server", **asked, **end, **more}))
        place = {key: closed[-1][key] for key in ("client_address", "server_address", "server_port", "flow_id")}
        before = waits(7, begin, "Metadata", seconds - idle - 0.001, exchange_id=f"k{number}-c1")
        answers.append(before | {"flow_id": f"k{number}", **CLIENT})
        if login_ms is not None:
            login = {"mechanism": "PLAIN", "accepted": True, "session_lifetime_ms": login_ms, "reauthentication": False}
            logins.append({**place, **login, "cluster_id": "c1", "client_id": "shop", "ts": at(begin + 0.01),
                           "exchange_id": f"k{number}-login", "form": "sasl_authenticate", "round_trips": 1,
                           "error_code": 0})  # fmt: skip
        begin += seconds + 0.05
    other = up(70, 3, client_address="10.1.0.8", client_id="store", ts_last_from_server=at(100))
    return {"kafka_connections": [*closed, other], "exchanges": answers, "kafka_authentications": logins}


def gave_up(
    times: int = 4, wait_s: float = 1.0, late_s: float = 0.4, *, copied: bool = True, operation: str = "Produce",
    offset_step: int = 40, grows: float = 0.0, **more: Any,
) -> dict[str, list[Row]]:  # fmt: skip
    """A client that closes a connection while its request waits, and sends the same on another one. The broker answers
    `late_s` after it closed. copied: it is the same batch; offset_step: how far on it is stored again."""
    connections, asked, batches = [], [], []
    for n in range(times):
        begin, closes = 3.0 * n, 3.0 * n + wait_s + n * grows
        own = {"requests": 1, "answered": 1, "bytes_to_server": 5000, "last_operation": operation}
        connections.append(up(n, begin, closes - begin, **own))
        ask = {
            "exchange_id": f"k{n}-c0",
            "request_message_id": f"k{n}-c-0",
            "request_bytes": 5000,
            "late": True,
            **more,
        }
        asked.append(waits(7, begin, operation, closes - begin + late_s, **ask) | {"flow_id": f"k{n}", **CLIENT})
        batches.append(produced(
            begin, flow=f"k{n}", **CLIENT, base_offset=100 + n * offset_step,
            base_timestamp=1_790_000_000_000 + n * (not copied), producer_id=-1, producer_epoch=-1, base_sequence=-1,
            ts_response=at(closes + late_s)))  # fmt: skip
    written = batches if operation == "Produce" else []
    return {"kafka_connections": connections, "exchanges": asked, "kafka_produce_batches": written}


ENDS_FIRES: list[Scenario] = [
    fires("KAF330", "warning", "the broker closes what comes while three are open", **too_many()),
    fires("KAF330", "warning", "the connections were open when the capture began, another address is let in",
          kafka_connections=[*(up(n, 0, handshake=None) for n in range(3)), up(9, 20, client_address="10.1.0.8"),
                             *(turned_away(40 + n, 3 + 9 * n) for n in range(6))]),
    fires("KAF330", "warning", "closed before a request came", **too_many(
        requests=0, unanswered=0, bytes_to_server=0, protocol=None, client_id=None, last_operation=None)),
    fires("KAF330", "warning", "nobody else tries, and it is refused to the end of the capture", kafka_connections=[
        *(up(n, n / 5, ts_last_from_server=at(46)) for n in range(3)),
        *(turned_away(40 + n, 3 + 9 * n) for n in range(6))]),
    fires("KAF331", "warning", "the broker ends logins that are not renewed", **short_lived(
        (12.0, 14.5, 12.4, 15.9, 12.1), login_ms=12_000)),
    fires("KAF331", "warning", "a proxy lets no connection live longer", **short_lived()),
    fires("KAF331", "info", "the same, with nothing on its way", **short_lived(pending=0)),
    fires("KAF331", "info", "closed when idle for ten seconds", **short_lived(
        (12.0, 18.5, 12.4, 25.9, 14.1), idle=10.0, pending=0)),
    fires("KAF331", "info", "closed when idle for three seconds, at the next look of the broker", **short_lived(
        (5.0, 7.5, 5.4, 8.9, 6.1), idle=3.0, looks=(0.0, 0.4, 0.1, 0.45, 0.2), pending=0)),
    fires("KAF332", "critical", "the same batch is stored four times", **gave_up()),
    fires("KAF332", "warning", "an idempotent one is stored once", **gave_up(offset_step=0)),
    fires("KAF332", "warning", "five requests, each given up after a second",
          **gave_up(5, operation="OffsetFetch", wait_s=1.02)),
]  # fmt: skip

ENDS_NEAR_MISSES: list[Scenario] = [
    silent("KAF330", "four are no pattern", **too_many(away=4)),
    silent("KAF330", "one was answered while more were open",
           kafka_connections=[*too_many()["kafka_connections"], up(22, 33)]),
    silent("KAF330", "a broker that refuses everybody from then on",
           kafka_connections=[*(up(n, 0) for n in range(3)), *(turned_away(40 + n, 3 + 9 * n) for n in range(6)),
                              turned_away(50, 20, client_address="10.1.0.8")]),
    silent("KAF330", "nobody else tries, and these clients were never answered",
           kafka_connections=[*(up(n, 0) for n in range(3)),
                              *(turned_away(40 + n, 3 + 9 * n, client_id="other") for n in range(6))]),
    silent("KAF330", "the others are silent for longer than is usual for them",
           kafka_connections=[*(up(n, n / 5, ts_last_from_server=at(38)) for n in range(3)),
                              *(turned_away(40 + n, 3 + 9 * n) for n in range(6))]),
    silent("KAF330", "a broker that goes down closes the others as well", kafka_connections=[
        row if row["answered"] == 0 else row | {"ts_last_from_server": at(40)}
        for row in too_many()["kafka_connections"]]),
    silent("KAF330", "probes that close their own connections", **too_many(closed_by="client", requests=0,
                                                                          unanswered=0, last_status=None)),
    silent("KAF330", "what is closed does not speak Kafka", **too_many(
        requests=0, unanswered=0, protocol=None, client_id=None, last_operation=None)),
    silent("KAF331", "four are no pattern", **short_lived((12.0, 12.1, 12.0, 12.3))),
    silent("KAF331", "ages that differ", **short_lived((12.0, 14.1, 16.0, 11.3, 19.2))),
    silent("KAF331", "a client that connects anew by design", **short_lived(closed_by="client")),
    silent("KAF331", "nothing else went on: the server may have started anew each time", **{
        **short_lived(), "kafka_connections": short_lived()["kafka_connections"][:-1]}),
    silent("KAF331", "another connection of the client lives on", **{
        **short_lived(),
        "kafka_connections": [*short_lived()["kafka_connections"], up(71, 0, ts_last_request=at(59))]}),
    silent("KAF331", "idle times that differ", **short_lived(
        (5.0, 7.5, 5.4, 8.9, 6.1), idle=3.0, looks=(0.0, 0.9, 0.1, 1.8, 0.2), pending=0)),
    silent("KAF331", "another connection of the client is idle for longer and lives on", **{
        **short_lived((12.0, 18.5, 12.4, 25.9, 14.1), idle=10.0, pending=0),
        "kafka_connections": [
            *short_lived((12.0, 18.5, 12.4, 25.9, 14.1), idle=10.0, pending=0)["kafka_connections"],
            up(71, 0, ts_last_request=at(1), ts_last_from_server=at(1.1))]}),
    silent("KAF331", "closed within the time that the login holds", **short_lived(
        (12.0, 14.5, 17.4, 25.9, 12.1), login_ms=60_000)),
    silent("KAF331", "idle connections that somebody resets (NET101)", **short_lived(
        (12.0, 18.5, 12.4, 25.9, 14.1), idle=10.0, how="reset", pending=0)),
    silent("KAF332", "twice only", **gave_up(2)),
    silent("KAF332", "a client that waits for no response", **gave_up(wait_s=0.05)),
    silent("KAF332", "other batches, and waits that differ", **gave_up(5, copied=False, grows=0.2)),
    silent("KAF332", "a consumer that is stopped while it waits for data", **gave_up(
        5, operation="Fetch", awaitable=True)),
    silent("KAF332", "the responses came in time", **gave_up(late_s=-0.2, late=False)),
]  # fmt: skip
