"""How connections ended, from given rows of flows and exchanges."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.rows import connection_from_rows
from wirewitness.analyser.network.facts.connection_ends import add_ends

S = 1_000_000_000
FLOW = {
    "flow_id": "f", "protocol": "kafka", "ts_first": 0, "ts_last": 9 * S, "observed_until": 9 * S, "gap_bytes": 0,
    "bytes_to_server": 500, "bytes_to_client": 500, "acked_by_server": 500, "acked_by_client": 500,
}  # fmt: skip
ASKED = {
    "exchange_id": "f-c-0", "flow_id": "f", "operation": "Produce", "ts": 2 * S, "direction": "client_to_server",
    "request_message_id": "f-c-0", "request_bytes": 100, "status": "unanswered", "answer_due": True,
}  # fmt: skip
CLOSED = {"ts_closed": 8 * S, "observed_until": 8 * S, "ts_last_from_client": 8 * S, "ts_last_from_server": 8 * S}
SHOWN = ("ended_by", "how", "pending", "pending_due", "pending_cut", "pending_of_server", "late_responses", "idle_ms")


@pytest.mark.parametrize(
    ("flow", "rows", "expected"),
    [
        pytest.param({}, [], (None, None, 0, 0, 0, 0, 0, None), id="open"),
        pytest.param({"closed_by": "client", **CLOSED}, [ASKED], ("client", "fin", 1, 1, 0, 0, 0, 6000.0), id="left"),
        pytest.param(
            {"closed_by": "server", "reset_by": "server", **CLOSED, "ts_last_from_server": 7 * S}, [ASKED],
            ("server", "reset", 1, 1, 0, 0, 0, 6000.0), id="the server resets",
        ),
        pytest.param(
            {"closed_by": "client", "reset_by": "client", **CLOSED}, [{**ASKED, "answer_due": False}],
            ("client", "fin", 1, 0, 0, 0, 0, 6000.0), id="a FIN, then a reset for what came after",
        ),
        pytest.param(
            {"closed_by": "server", **CLOSED}, [{**ASKED, "request_bytes": 450_000, "answer_due": False}],
            ("server", "fin", 0, 0, 1, 0, 0, 6000.0), id="a request that was not sent whole",
        ),
        pytest.param(
            {"closed_by": "client", **CLOSED},
            [{**ASKED, "direction": "server_to_client", "request_message_id": "f-s-400", "answer_due": None}],
            ("client", "fin", 0, 0, 0, 1, 0, 6000.0), id="a message of the server",
        ),
        pytest.param(
            {"closed_by": "client", **CLOSED}, [{**ASKED, "status": "ok", "ts_response": 9 * S, "late": True}],
            ("client", "fin", 0, 0, 0, 0, 1, 6000.0), id="the response came too late",
        ),
    ],
)  # fmt: skip
def test_ends(flow: dict[str, Any], rows: list[dict[str, Any]], expected: tuple[Any, ...]) -> None:
    con = connection_from_rows({"flows": [FLOW | flow], "exchanges": rows}, own=True)
    add_ends(con)
    assert con.sql(f"SELECT {', '.join(SHOWN)} FROM connection_ends").fetchall() == [expected]
    con.close()


def test_bytes_that_nobody_acked() -> None:
    flow = FLOW | {"acked_by_client": 488, "unheard_sends_to_client": 8}
    con = connection_from_rows({"flows": [flow, {**FLOW, "flow_id": "copy", "duplicate_of": "f"}]}, own=True)
    add_ends(con)
    found = con.sql("SELECT unacked_by_server, unacked_by_client, unheard_sends_to_client FROM connection_ends")
    assert found.fetchall() == [(0, 12, 8)]
    con.close()
