"""What is missing of connections."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyser.engine.rules.scenarios.build import at
from tests.support.rows import connection_from_rows
from wirewitness.analyser.engine.facts.gaps import add_gaps

Row = dict[str, Any]
FLOW = {"flow_id": "f1", "client_address": "10.0.0.1", "client_port": 50000, "ts_first": at(0), "handshake_seen": True}
LOST = {
    "flow_id": "f1", "ts": at(5), "group": "tcp", "code": "gap", "span": "100-149", "direction": "client_to_server",
    "packet": 9,
}  # fmt: skip

# In: a flow and its expert infos. Out: ts, direction, reason, bytes, packet.
CASES: dict[str, tuple[Row, list[Row], list[tuple[Any, ...]]]] = {
    "bytes that the receiver confirmed": ({}, [LOST], [(at(5), "client_to_server", "bytes missing", 50, 9)]),
    "requests of a log": (
        {},
        [{**LOST, "group": "log", "span": None}],
        [(at(5), "client_to_server", "requests missing", None, 9)],
    ),
    "a span that nobody can read": (
        {},
        [{**LOST, "span": "x"}],
        [(at(5), "client_to_server", "bytes missing", None, 9)],
    ),
    "a connection that began before": (
        {"handshake_seen": False, "first_packet": 3},
        [],
        [(at(0), None, "start missing", None, 3)],
    ),
    "the same seen at a second point": ({"handshake_seen": False, "duplicate_of": "f0"}, [], []),
    "another remark": ({}, [{**LOST, "code": "retransmission"}, {**LOST, "group": "kafka"}], []),
    "no time": ({}, [{**LOST, "ts": None}], []),
    "of a flow that is not there": ({}, [{**LOST, "flow_id": "f9"}], []),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_missing(name: str) -> None:
    flow, remarks, expected = CASES[name]
    con = connection_from_rows({"flows": [{**FLOW, **flow}], "expert_infos": remarks})
    add_gaps(con)
    found = con.sql("SELECT epoch_ns(ts), direction, reason, bytes, packet FROM gaps ORDER BY ALL").fetchall()
    assert found == expected
