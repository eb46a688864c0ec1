"""What findings of MQTT, MongoDB and TCP cost: the worst of a severity stands first; what MQT115 says is lost."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tests.analyser.engine.rules.concerned import connected, looked_at
from tests.analyser.engine.rules.scenarios import FIRES
from tests.analyser.engine.rules.scenarios.build import remark
from tests.analyser.engine.rules.scenarios.build_mqtt import connection, crossing, publish, to_client
from tests.analyser.engine.rules.scenarios.mqtt_topics import circle
from tests.analyser.engine.rules.scenarios.scenario import fires
from tests.support.timing import takes_less_than
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.numbers import cost
from wirewitness.analyser.engine.rules.findings import findings_table
from wirewitness.analyser.engine.rules.running import Failure, run
from wirewitness.analyser.tables.queries import null_columns

FAMILIES = ("MQT", "MON", "NET", "TCP")
JUDGED = [code for code, rule in RULES.items() if code.startswith(FAMILIES) and rule.severity != "info"]


@pytest.mark.parametrize("code", JUDGED)
def test_a_warning_has_its_cost(code: str) -> None:
    scenario = next(one for one in FIRES if one.code == code and (code, "info") not in one.expected)
    found = [one for one in run(connected(scenario), looked_at(scenario)) if one.code == code]
    assert found
    assert all(cost(one.numbers) > 0 for one in found)


@pytest.mark.parametrize("often", ["a", "b"])
def test_of_two_clients_that_break_a_rule_the_one_that_does_so_more_often_is_told_first(often: str) -> None:
    counts = {"a": 1, "b": 1, often: 30}
    rows = {
        "mqtt_connections": [connection(flow, client_id=f"client-{flow}") for flow in counts],
        "expert_infos": [
            remark(flow, n, "protocol", "dup_on_qos_0", direction="client_to_server")
            for flow, number in counts.items()
            for n in range(number)
        ],
    }
    scenario = fires("MQT106", "warning", "two clients", **rows)
    told = findings_table(run(connected(scenario), looked_at(scenario))).column("sentence").to_pylist()
    assert [f"client-{often}" in one for one in told] == [True, False]


@pytest.mark.parametrize(
    ("flows", "direction", "findings"),
    [(3, "client_to_server", 3), (8, "client_to_server", 1), (8, "server_to_client", 1)],
    ids=["few clients, each for itself", "many clients", "one server"],
)
def test_who_breaks_a_rule_often_has_one_finding(flows: int, direction: str, findings: int) -> None:
    """On two connections each."""
    names = [f"f{n}" for n in range(2 * flows)]
    rows = {
        "mqtt_connections": [
            connection(flow, n, 900, client_id=f"client-{n % flows}", closed_by="client")
            for n, flow in enumerate(names)
        ],
        "expert_infos": [remark(flow, 5, "protocol", "dup_on_qos_0", direction=direction) for flow in names],
    }
    scenario = fires("MQT106", "warning", "many connections", **rows)
    found = [one for one in run(connected(scenario), looked_at(scenario)) if one.code == "MQT106"]
    assert len(found) == findings
    assert sum(one.numbers["count"] for one in found) == 2 * flows
    assert all(("8 clients" in one.sentence) == (findings == 1) for one in found)
    assert all(one.title.startswith("Set DUP on QoS 0 messages: ") for one in found)


def test_a_slow_subscriber_is_told_what_it_lost_and_how_long_it_takes() -> None:
    rows = crossing(0, 0)
    reached = (0, 1, 2, 3, 6)
    rows["mqtt_publishes"] = [
        *(publish(10 + n, "p", payload_crc32=n, qos=1, handshake="complete") for n in range(8)),
        *(
            to_client(
                10.1 + n, "s", client_id="board-1", payload_crc32=n, qos=1, handshake="complete", completed_ms=1500
            )
            for n in reached
        ),
    ]
    scenario = fires("MQT115", "warning", "a slow subscriber", **rows)
    (found,) = run(connected(scenario), looked_at(scenario))
    told = found.numbers
    assert (told["cause"], told["missing"], told["overtaken"], told["acknowledged_ms"]) == ("slow", 3, 2, 1500)
    assert found.title == "3 messages not delivered: room/heat to board-1"
    assert "takes 1.5 s in the median to acknowledge" in found.sentence
    assert "2 of them are lost" in found.sentence


@pytest.mark.parametrize(("expiry_s", "cause"), [(2, "expired"), (3600, "unacknowledged")])
def test_what_expired_behind_a_full_window_is_told_with_the_window(expiry_s: int, cause: str) -> None:
    rows = crossing(0, 0)
    rows["mqtt_publishes"] = [
        *(publish(10 + n, "p", payload_crc32=n, qos=1, handshake="complete", message_expiry_s=expiry_s)
          for n in range(4)),
        to_client(10.1, "s", client_id="board-1", payload_crc32=0, qos=1, handshake="no_puback"),
    ]  # fmt: skip
    scenario = fires("MQT115", "warning", "what expires behind a full window", **rows)
    (found,) = [one for one in run(connected(scenario), looked_at(scenario)) if one.code == "MQT115"]
    told = found.numbers
    assert (told["cause"], told["blocked_by"], told["missing"]) == (cause, "unacknowledged", 3)
    assert ("The message expiry interval was over" in found.sentence) == (cause == "expired")
    assert ("the publisher's message expiry interval" in found.next_step) == (cause == "expired")
    assert "had left 1 message unacknowledged" in found.sentence
    assert "Look at the subscriber's handler" in found.next_step


def test_a_circle_is_judged_by_the_time_of_which_all_rows_are_there() -> None:
    rounds = 2_700
    scenario = fires("MQT120", "warning", "more rows than are looked at", mqtt_publishes=circle(2, rounds, 0.004))
    (found,) = (one for one in run(connected(scenario), looked_at(scenario)) if one.code == "MQT120")
    assert 2 * 2_400 < found.numbers["records_again"] < 2 * rounds
    assert "times or more" in found.sentence
    assert {client["client_id"] for client in found.numbers["clients"]} == {"bridge-0", "bridge-1"}


def test_a_loop_that_nothing_brakes_is_found_within_little_memory(tmp_path: Path) -> None:
    """Rows beyond those that are looked at are neither sorted nor kept."""
    path = tmp_path / "mqtt_publishes.parquet"
    con = duckdb.connect(":memory:")
    con.execute(f"""COPY (
        SELECT printf('%s.%d.%d', bridge, n, way) AS message_id, 'flow of ' || bridge AS flow_id, bridge AS client_id,
               make_timestamp_ns(1795000000000000000 + n * 40000 + way * 5000)::TIMESTAMPTZ_NS AS ts, n AS packet,
               if(way = 0, 'server_to_client', 'client_to_server') AS direction, '10.2.0.4' AS client_address,
               40000 AS client_port, '10.2.0.2' AS server_address, 1883 AS server_port, 'room/heat' AS topic,
               false AS retain, false AS dup, 8 AS payload_bytes, 7 AS payload_crc32, '3.1.1' AS version, 'f' AS file
        FROM range(60000) AS t(n), range(2) AS w(way), (VALUES ('bridge-0'), ('bridge-1')) AS b(bridge)
    ) TO '{path}'""")
    con.execute(f"CREATE VIEW mqtt_publishes AS FROM read_parquet('{path}')")
    con.execute(f"CREATE VIEW mqtt_topic_rounds AS SELECT {null_columns('mqtt_topic_rounds')} LIMIT 0")
    con.execute("SET memory_limit = '35MB'; SET temp_directory = ''; SET threads = 1")
    (found,) = run(con, [RULES["MQT120"]])
    assert found.numbers["records_again"] > 9_000


@pytest.mark.parametrize("connections", [0, 3000])
def test_a_client_that_comes_back_often_is_looked_at_in_time(connections: int) -> None:
    """Each time with a message open, which it sends again: MQT107 asks once what next connections brought."""
    rows = {
        "mqtt_connections": [
            connection(f"f{n}", 20 * n, 20 * n + 10, closed_by="client", clean_start=False, session_present=True)
            for n in range(connections)
        ],
        "mqtt_publishes": [
            publish(20 * n + 1, f"f{n}", qos=1, packet_identifier=7, handshake="no_puback", ts_acknowledged=None)
            for n in range(max(connections, 3))
        ],
    }
    scenario = fires("MQT107", "warning", "comes back", **rows)

    def looks() -> None:
        failures: list[Failure] = []
        assert run(connected(scenario), [RULES["MQT107"]], failures) == []
        assert failures == []

    assert takes_less_than(2, looks)  # it took 8 s to look for each connection among all messages
