"""Which of frozen and cut off a silent member was, by what TCP tells; nothing where it does not tell."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from tests.analyser.engine.rules.scenarios.build import Row, at, exchange, flow, remark
from tests.analyser.engine.rules.scenarios.build_groups import beats, joined
from tests.support.rows import connection_from_rows
from wirewitness.analyser.engine.facts.gaps import add_gaps
from wirewitness.analyser.kafka.facts.group_stage import add_members_and_rebalances
from wirewitness.analyser.kafka.facts.ownership import add_owners

CLIENT = {"client_address": "10.1.0.1", "client_id": "billing-1", "protocol": "kafka"}
BACK = 25.0
# m1 is silent from 7.002 on and comes back; m2 goes on.
EVENTS = [
    *joined(5, "m1", "m2", first=1, last=1.5), *beats("m2", 5, *range(4, 40, 3)),
    *beats("m1", 5, 4, 7), *beats("m1", 5, BACK, error_code=25),
]  # fmt: skip


def sent_again(*times: float, span: str = "100-199", code: str = "retransmission", flow_id: str = "flow1") -> list[Row]:
    return [remark(flow_id, one, "tcp", code, direction="server_to_client", span=span) for one in times]


def fetched(seconds: float, lasts: float | None = 0.4, **more: Any) -> Row:
    return exchange("flow1", seconds, "Fetch", lasts=lasts, **CLIENT, **more)


def side(rows: dict[str, list[Row]], **heard: Any) -> str | None:
    flows = [
        flow("flow1", ts_last=at(60), **({"acked_by_client": 900} | heard)),
        flow("flow2", ts_last=at(60), client_address="10.1.0.2"),
    ]
    con: duckdb.DuckDBPyConnection = connection_from_rows({"kafka_group_events": EVENTS, "flows": flows, **rows})
    add_gaps(con)
    add_owners(con)
    add_members_and_rebalances(con)
    found = con.sql("SELECT idle_side FROM kafka_members WHERE member_id = 'm1' ORDER BY ts").fetchall()
    told: str | None = found[0][0]
    return told


AGAIN = sent_again(8, 8.4, 9.2, 10.8)
LAST = [fetched(6.5), fetched(6.9, 0.3)]


def test_bytes_that_nobody_confirms_are_a_network_that_is_cut() -> None:
    assert side({"expert_infos": AGAIN, "exchanges": LAST}) == "network"
    assert side({"expert_infos": AGAIN}) == "network"


def test_an_answer_that_is_confirmed_and_not_followed_is_a_process_that_stands_still() -> None:
    assert side({"exchanges": LAST}) == "process"
    assert side({"exchanges": [*LAST, fetched(BACK - 0.1)]}) == "process"


@pytest.mark.parametrize(
    ("rows", "heard"),
    [
        pytest.param({}, {}, id="nothing of its connections is known"),
        pytest.param({"expert_infos": sent_again(8, 8.4), "exchanges": LAST}, {}, id="sent again twice"),
        pytest.param({"expert_infos": sent_again(8, 8.1, 8.2, 8.3)}, {}, id="all within a moment"),
        pytest.param({"expert_infos": sent_again(3, 4, 5, 6)}, {}, id="before it was silent"),
        pytest.param({"expert_infos": sent_again(8, 10, 12, flow_id="flow2")}, {}, id="to another client"),
        pytest.param(
            {"expert_infos": [row for n in range(4) for row in sent_again(8 + n, span=f"{n}00-{n}99")]}, {},
            id="other bytes each time: loss",
        ),
        pytest.param({"exchanges": LAST}, {"acked_by_client": None}, id="the client's side is not in the capture"),
        pytest.param({"exchanges": [fetched(6.5)]}, {}, id="the last answer came before the silence"),
        pytest.param({"exchanges": [*LAST, fetched(9, None)]}, {}, id="a request still came: it is alive"),
        pytest.param({"exchanges": [fetched(6.9, BACK - 8)]}, {}, id="the answer came too late to be sent again"),
        pytest.param(
            {"exchanges": LAST, "expert_infos": [remark("flow1", 9, "tcp", "gap")]}, {}, id="bytes are missing"
        ),
    ],
)  # fmt: skip
def test_else_it_is_not_known(rows: dict[str, list[Row]], heard: dict[str, Any]) -> None:
    assert side(rows, **heard) is None
