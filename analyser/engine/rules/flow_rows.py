"""What the rules about captures and TCP share: how a flow is named, what proves a wait, the finding on a whole capture.

In: rows of a rule's frames as dicts. Out: words, evidence, findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from wirewitness.analyser.base.addresses import client_endpoint_text, server_of, server_text
from wirewitness.analyser.base.words import printable
from wirewitness.analyser.engine.rules.evidence import Proof, proof_of
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row
from wirewitness.analyser.engine.rules.rule import Rule

# Columns of flows by which one is named.
FLOW_COLUMNS = ("flow_id", "protocol", "client_address", "client_port", "server_address", "server_port")
# So many flows are named in the numbers of one finding; the rest is counted.
MOST_NAMED = 20
# Characters of a client's name in a sentence.
MAX_NAME = 120


def named_by(table: str, flows: str) -> str:
    """SQL on messages or exchanges: one row of each of these flows that says who the client is. flows: their SQL."""
    column = f"{table[:-1]}_id"
    return (
        f"{column} IN (SELECT min({column}) FROM {table} WHERE client_id IS NOT NULL AND flow_id IN "
        f"(SELECT flow_id FROM flows WHERE {flows}) GROUP BY flow_id)"
    )


def client_names(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The client id, or the application, of each flow, by rows of that kind."""
    return {row["flow_id"]: row["client_id"] for row in rows if row["client_id"]}


def wait_proof(waits: Sequence[Row]) -> Proof:
    """Rows of `tcp_waits` as proof, at least one: the packets at both ends, with the message in which they are."""
    return Proof(min(wait["ts"] for wait in waits), max(wait["ts_last"] for wait in waits), _ends(waits))


def _ends(waits: Iterable[Row]) -> Iterator[Evidence]:
    for wait in waits:
        message_id = wait.get("message_id")
        yield Evidence(wait["file"], wait["packet_first"], message_id)
        yield Evidence(wait["file_last"], wait["packet_last"], message_id)


def endpoints_text(flow: Mapping[str, Any], name: str | None = None) -> str:
    """`10.0.0.1:50000 (billing-1) and 10.0.0.9:9092 (kafka)`. name: of the client, where it is known."""
    protocol = flow["protocol"] or "unknown protocol"
    who = f" ({printable(name, MAX_NAME)})" if name else ""
    return f"{client_endpoint_text(flow)}{who} and {server_text(flow)} ({protocol})"


def flow_numbers(flow: Mapping[str, Any], name: str | None = None) -> dict[str, Any]:
    """What a finding about one flow has in its numbers, so that it joins those of the client and the server."""
    return {
        "flow_id": flow["flow_id"],
        "address": flow["client_address"],
        **({"client_id": name} if name else {}),
        "server": server_of(flow),
    }


def capture_finding(
    rule: Rule,
    worst: Sequence[Mapping[str, Any]],
    proof: Sequence[Mapping[str, Any]],
    counted: Mapping[str, str],
    sentence: str,
    next_step: str,
    *,
    title: str,
    **numbers: int,
) -> Finding:
    """The one finding of a rule about the capture as a whole.

    worst: the flows, those that are hit most first. proof: rows of expert_infos. counted: word -> column of the flows.
    numbers: counts besides that of the flows.
    """
    named = [
        {
            "flow_id": f["flow_id"],
            **{word: f[column] for word, column in counted.items()},
            "endpoints": endpoints_text(f),
        }
        for f in worst[:MOST_NAMED]
    ]
    return rule.finding(
        subject={"capture": "all"},
        title=title,
        sentence=sentence,
        next_step=next_step,
        proof=proof_of(proof),
        numbers={"flows": len(worst), **numbers, "worst": named},
    )


def exchange_of_each_client(flows: str) -> str:
    """A condition on `exchanges`: one of each client id that an address with such flows has at their server."""
    pair = "server_address, server_port, client_address"
    return (
        f"exchange_id IN (SELECT min(exchange_id) FROM exchanges WHERE client_id IS NOT NULL AND ({pair}) IN "
        f"(SELECT ({pair}) FROM flows WHERE {flows}) GROUP BY {pair}, client_id)"
    )
