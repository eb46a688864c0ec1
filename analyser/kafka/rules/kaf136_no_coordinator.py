"""KAF136 no-coordinator: a broker finds no coordinator for groups or transactions, for as long as anybody asks.

Finds
    Brokers that answer every FindCoordinator with COORDINATOR_NOT_AVAILABLE (15).

Why it matters
    Without a coordinator no group begins and no transaction starts, while producers without transactions write on as
    ever. Clients ask again without a word: the application stands still and reports nothing. The usual cause is that
    __consumer_offsets cannot be made, since fewer brokers are there than its replication factor asks for.

How it decides
    `least` requests to one server, over `lasts_s` or more, all of them refused with 15, the last one included. A
    cluster that starts answers so for a moment.
    Confidence high: the answers are on the wire.

False alarms
    None known: a cluster that takes longer to start does not serve its groups either.

What it cannot tell
    Why: the broker's log says it. Of requests alone nothing is said.

References
    Kafka protocol errors (15); offsets.topic.replication.factor, transaction.state.log.replication.factor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_S, period_text, seconds_text, time_text
from wirewitness.analyser.base.words import count, names_text
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text

ASKED = "exchanges"
_NOT_AVAILABLE = 15
_MOST_NAMES = 20
_OF_COORDINATORS = "protocol = 'kafka' AND operation = 'FindCoordinator' AND status IN ('ok', 'error')"


def detect(frames: Frames, *, least: int = 10, lasts_s: float = 5.0) -> Iterator[Finding]:
    """One finding for each server."""
    servers: dict[str, list[Row]] = defaultdict(list)
    for row in rows_of(frames[ASKED]):
        servers[server_text(row)].append(row)
    for server, rows in servers.items():
        if (
            len(rows) >= least
            and rows[-1]["ts"] - rows[0]["ts"] >= lasts_s * NS_PER_S
            and all(row["error_code"] == _NOT_AVAILABLE for row in rows)
        ):
            yield _finding(server, rows)


def _finding(server: str, rows: Sequence[Row]) -> Finding:
    first, last = rows[0], rows[-1]
    clients = list({(row["client_address"], row["client_id"]): row for row in rows}.values())
    lasts = seconds_text(last["ts"] - first["ts"])
    return RULE.finding(
        provisional=True,
        title=f"No coordinator for {lasts}: {server}",
        subject={"cluster": first["cluster_id"], "server": server},
        sentence=f"{server} answered all {count(len(rows), 'FindCoordinator request')} of "
        f"{names_text([client_text(row) for row in clients], 3)} with error {_NOT_AVAILABLE} "
        f"(COORDINATOR_NOT_AVAILABLE), {period_text(first['ts'], last['ts'])}: none of their groups or transactions "
        "can begin.",
        next_step="Look at the broker's log, whether __consumer_offsets is there, and whether there are as many "
        "brokers as offsets.topic.replication.factor or transaction.state.log.replication.factor asks for.",
        proof=Proof(first["ts"], last["ts"], evidence_of_ids((first["exchange_id"], last["exchange_id"]))),
        numbers={
            "cluster": first["cluster_id"],
            "server": server,
            "where": server,
            "requests": len(rows),
            "error_code": _NOT_AVAILABLE,
            "seconds": round((last["ts"] - first["ts"]) / NS_PER_S, 3),
            "since": time_text(first["ts"]),
            "until": time_text(last["ts"]),
            "clients": [client_numbers(row) for row in clients[:_MOST_NAMES]],
        },
    )


RULE = Rule(
    code="KAF136",
    question="refused",
    name="no-coordinator",
    severity="critical",
    confidence="high",
    reads={
        ASKED: (
            "ts", "exchange_id", "client_id", "client_address", "server_address", "server_port", "error_code",
        ),
    },
    partition_by=("cluster_id", "server_address", "server_port"),
    detect=detect,
    rows={ASKED: _OF_COORDINATORS},
    suspects=(
        f"SELECT cluster_id, server_address, server_port FROM r_{ASKED} "
        "GROUP BY cluster_id, server_address, server_port HAVING count(*) >= 10 AND bool_and(error_code = 15)"
    ),
    signs={ASKED: "count(*) FILTER (operation = 'FindCoordinator' AND error_code = 15) >= 10"},
)  # fmt: skip
