"""KAF325 brokers-at-one-address: several brokers are advertised under one address.

Finds
    Responses that name two brokers or more with the same host and port: a load balancer, a proxy or a mapped port whose
    address stands in advertised.listeners of each.

Why it matters
    A client picks a broker by its id and connects to the address that belongs to it. Where all have one address it
    reaches any of them: requests for a partition go to brokers that do not lead it, group requests to brokers that do
    not coordinate, and each try is refused or not as it happens.

How it decides
    Two node ids with one host and port in one response to Metadata or DescribeCluster.
    warning where clients that were told so got NOT_LEADER_OR_FOLLOWER or NOT_COORDINATOR `refused_least` times; else
    info, for a service whose every node does all of it may well have one address.
    Confidence high: the response says both.

False alarms
    Elections make the same errors for some seconds; the address is wrong all the same.

What it cannot tell
    Whose setting it is: a broker's advertised.listeners, or a proxy that writes addresses anew. Of requests alone
    nothing is said. Errors at clients whose responses were not captured are not counted.

References
    advertised.listeners; KIP-103. NOT_LEADER_OR_FOLLOWER (6), NOT_COORDINATOR (16).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import endpoint_text
from wirewitness.analyser.base.times import moment_text, time_text
from wirewitness.analyser.base.words import count, names_text, times
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text
from wirewitness.analyser.kafka.rules.producers import evidence_of

BROKERS, EXCHANGES = "kafka_brokers", "exchanges"
_ELSEWHERE = {6: "NOT_LEADER_OR_FOLLOWER", 16: "NOT_COORDINATOR"}
_MOST = 20


def detect(frames: Frames, *, refused_least: int = 3) -> Iterator[Finding]:
    """One finding for each address that several brokers have."""
    answers: dict[str | None, list[Row]] = {}
    for row in rows_of(frames[BROKERS]):
        answers.setdefault(row["exchange_id"], []).append(row)
    told: dict[tuple[str, int], list[Row]] = {}
    for rows in answers.values():
        own: dict[tuple[str, int], list[Row]] = {}
        for row in rows:
            own.setdefault((row["host"], row["port"]), []).append(row)
        for place, named in own.items():
            if len({row["node_id"] for row in named}) > 1:
                told.setdefault(place, []).extend(named)
    for (host, port), rows in told.items():
        who = {_who(row) for row in rows}
        yield _finding(host, port, rows, [row for row in rows_of(frames[EXCHANGES]) if _who(row) in who], refused_least)


def _who(row: Row) -> tuple[str | None, str | None]:
    return row["client_address"], row["client_id"]


def _finding(host: str, port: int, rows: Sequence[Row], refused: Sequence[Row], refused_least: int) -> Finding:
    server = endpoint_text(host, port)
    nodes = sorted({row["node_id"] for row in rows})
    clients = list({_who(row): row for row in rows}.values())
    errors = Counter(row["error_code"] for row in refused)
    hit = list({_who(row): row for row in refused}.values())
    listed = names_text([f"{code} {_ELSEWHERE[code]} {times(number)}" for code, number in errors.most_common()])
    then = (
        f" Their requests reach a broker that is not responsible: {names_text([client_text(row) for row in hit], 3)} "
        f"got {listed}."
        if errors
        else ""
    )
    until = max(row["ts"] for row in (*rows, *refused))
    return RULE.finding(
        severity="warning" if errors.total() >= refused_least else "info",
        title=f"{count(len(nodes), 'broker')} are advertised at one address: {server}",
        subject={"cluster": rows[0]["cluster_id"], "server": server},
        sentence=f"Brokers {names_text([str(node) for node in nodes], 5)} are advertised under the "
        f"same address {server}, from {moment_text(rows[0]['ts'])} on, to {count(len(clients), 'client')}: nobody can "
        f"choose a broker by it.{then}",
        next_step="Give each broker an address or a port of its own in advertised.listeners (at the proxy or balancer "
        "too: a port or a name for each broker); use the shared address for bootstrap.servers only.",
        proof=Proof(rows[0]["ts"], until, evidence_of([*rows[: _MOST // 2], *refused[: _MOST // 2]])),
        numbers={
            "cluster": rows[0]["cluster_id"],
            "server": server,
            "where": server,
            "brokers": nodes[:_MOST],
            "refused": errors.total(),
            "errors": {_ELSEWHERE[code]: number for code, number in errors.items()},
            "clients": [client_numbers(row) for row in (hit or clients)][:_MOST],
            "clients_told": len(clients),
            "since": time_text(rows[0]["ts"]),
            "until": time_text(until),
        },
    )


RULE = Rule(
    code="KAF325",
    question="differs",
    name="brokers-at-one-address",
    severity="warning",
    confidence="high",
    reads={
        BROKERS: (
            "ts", "exchange_id", "node_id", "host", "port", "client_id", "client_address", "file", "request_packet",
        ),
        EXCHANGES: ("ts", "exchange_id", "error_code", "client_id", "client_address", "request_file",
                    "request_packet"),
    },
    partition_by=("cluster_id",),
    detect=detect,
    rows={
        # Of responses that name two brokers at one place.
        BROKERS: f"""
            node_id IS NOT NULL AND exchange_id IN (
                SELECT exchange_id FROM {BROKERS} WHERE source IN ('Metadata', 'DescribeCluster') AND node_id >= 0
                    AND host <> '' GROUP BY exchange_id, host, port HAVING count(DISTINCT node_id) > 1)""",
        EXCHANGES: f"protocol = 'kafka' AND error_code IN {tuple(_ELSEWHERE)}",
    },
    suspects=AnyRow(BROKERS),
)  # fmt: skip
