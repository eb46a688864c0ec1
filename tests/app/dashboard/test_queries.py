"""Queries behind the views of MQTT, MongoDB, exchanges and connections, on samples whose contents are known."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import wirewitness
from tests.conftest import ROOT
from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.reports.base.questions.exchange_rows import flow_row, message_count, messages_before, operations
from wirewitness.reports.base.questions.wanted_exchanges import Wanted, exchange_query
from wirewitness.reports.protocols.mongo.questions.rows import (
    addresses_and_apps,
    command_latency,
    commands_from,
    commands_of,
    commands_over_time,
    shapes_over_time,
)
from wirewitness.reports.protocols.mongo.sections.shapes import shapes_sql
from wirewitness.reports.protocols.mqtt.questions.rows import BARS, ENDS, connection_lanes, lane_count
from wirewitness.reports.protocols.mqtt.questions.topics import publishes, publishes_over_time, topic_tree, topics

SECOND_NS = 1_000_000_000


@pytest.fixture(scope="module")
def mqtt() -> Iterator[wirewitness.Analysis]:
    with wirewitness.read(str(ROOT / "sample_pcaps" / "mqtt_faults.pcapng")) as analysis:
        yield analysis


@pytest.fixture(scope="module")
def mongo() -> Iterator[wirewitness.Analysis]:
    wanted = ("flows", "messages", "exchanges", "mongo_commands")
    with wirewitness.read(str(ROOT / "sample_pcaps" / "mongo_shapes_and_errors.pcapng"), tables=wanted) as analysis:
        yield analysis


def number(analysis: wirewitness.Analysis, query: str) -> int:
    return int(analysis.sql(query).column(0)[0].as_py())


@pytest.mark.parametrize(
    ("chosen", "condition"),
    [
        ({}, "true"),
        ({"operation": "PUBLISH"}, "operation = 'PUBLISH'"),
        ({"status": "unanswered"}, "status = 'unanswered'"),
        ({"slower_ms": 0.2}, "latency_ms > 0.2"),
        ({"client": "PRESS"}, "client_id = 'press-9'"),
        ({"client": "10.77.0.12"}, "client_address = '10.77.0.12'"),
        ({"operation": "CONNECT", "client": "' or 1=1 --"}, "false"),
        ({"client": "press-9@10.77.0.12"}, "client_id = 'press-9' and client_address = '10.77.0.12'"),
        ({"client": "@10.77.0.12"}, "client_address = '10.77.0.12'"),
        ({"about": "Ge/Doctor"}, "exchange_id in (select message_id from mqtt_publishes where topic = 'page/doctor')"),
        ({"error": "quota exceeded"}, "status = 'error' and error_name = 'Quota exceeded'"),
        ({"packet": "40-60"}, "request_packet between 40 and 60 or response_packet between 40 and 60"),
        ({"packet": "all of them"}, "false"),
        ({"server": ":1883"}, "server_port = 1883"),
        ({"text": "client_id=viewer"}, "operation = 'CONNECT' and client_id = 'viewer'"),
        ({"took": "0.1-0.3"}, "latency_ms >= 0.1 and latency_ms < 0.3"),
        ({"took": "0.2-"}, "latency_ms >= 0.2"),
        ({"took": "-"}, "false"),
        ({"part_of": "finding x", "flows": ["nothing"]}, "false"),
        ({"part_of": "finding x"}, "false"),
    ],
    ids=str,
)
def test_exchanges_are_chosen(mqtt: wirewitness.Analysis, chosen: dict[str, object], condition: str) -> None:
    found = number(mqtt, f"SELECT count(*) FROM ({exchange_query(Wanted(**chosen))})")  # type: ignore[arg-type]
    assert found == number(mqtt, f"SELECT count(*) FROM exchanges WHERE {condition}")


def test_exchanges_of_the_connections_of_a_finding(mqtt: wirewitness.Analysis) -> None:
    flows = mqtt.sql("SELECT DISTINCT flow_id FROM exchanges ORDER BY 1 LIMIT 2").column(0).to_pylist()
    found = number(mqtt, f"SELECT count(*) FROM ({exchange_query(Wanted(part_of='finding x', flows=flows))})")
    assert 0 < found < number(mqtt, "SELECT count(*) FROM exchanges")
    assert found == number(mqtt, f"SELECT count(*) FROM exchanges WHERE flow_id IN ('{flows[0]}', '{flows[1]}')")


def test_operations_are_listed_by_their_number(mqtt: wirewitness.Analysis) -> None:
    assert operations(mqtt)[0] == "PUBLISH"
    assert set(operations(mqtt)) == set(mqtt.sql("SELECT DISTINCT operation FROM exchanges").column(0).to_pylist())


def test_places_of_messages_in_their_flow(mongo: wirewitness.Analysis) -> None:
    flow_id = mongo.sql("SELECT flow_id FROM messages GROUP BY 1 ORDER BY count(*) DESC LIMIT 1").column(0)[0].as_py()
    ids = mongo.sql(
        f"SELECT message_id FROM messages WHERE flow_id = '{flow_id}' "
        "ORDER BY ts, packet_last, stream_offset, message_id"
    )
    names = ids.column(0).to_pylist()
    assert message_count(mongo, flow_id) == len(names)
    assert [messages_before(mongo, flow_id, name) for name in names[:3]] == [0, 1, 2]
    assert messages_before(mongo, flow_id, "nothing") is None
    row = flow_row(mongo, flow_id)
    assert row is not None
    assert row["protocol"] == "mongo"
    assert flow_row(mongo, "no such flow") is None


def test_lanes_show_how_connections_ended(mqtt: wirewitness.Analysis) -> None:
    lanes = connection_lanes(mqtt)
    assert len(lanes) == number(mqtt, "SELECT count(*) FROM mqtt_connections")
    assert {lane["ending"] for lane in lanes} <= set(ENDS)
    assert {lane["ending"] for lane in lanes if lane["client"] == "thief"} == {"refused"}
    assert all(lane["t"] <= lane["t_end"] for lane in lanes)


START_NS = 1_790_000_000_000_000_000


def connection(at_s: float, until_s: float | None, address: str, **more: object) -> dict[str, object]:
    """An MQTT connection of client `m`; until_s: when the server closed it."""
    closed = None if until_s is None else START_NS + round(until_s * SECOND_NS)
    row: dict[str, object] = {
        "flow_id": f"{address}-{at_s}", "client_id": "m", "client_address": address, "client_port": 4000,
        "error_code": 0, "ts": START_NS + round(at_s * SECOND_NS), "ts_end": START_NS + round(at_s * SECOND_NS) + 1,
        "ts_closed": closed, "closed_by": None if closed is None else "server",
        "observed_until": START_NS + 60 * SECOND_NS,
    }  # fmt: skip
    return row | more


def test_a_lane_ends_with_its_connection_and_says_who_took_it_over() -> None:
    """Two programs throw each other out; the last one stays. A third connection broke off long after the next began."""
    told = [connection(0, 2.0, "10.0.0.1"), connection(1.9, 4.0, "10.0.0.2"), connection(4.0 - 0.1, None, "10.0.0.1"),
            connection(0, 30, "10.0.0.9", client_id="alone")]  # fmt: skip
    lanes = connection_lanes(RowsAnalysis({"mqtt_connections": told}))
    found = {
        lane["flow_id"]: (lane["ending"], lane["how"], round(lane["t_end"] / 1e3 - START_NS / 1e9)) for lane in lanes
    }
    assert found == {
        "10.0.0.1-0": ("taken over", "taken over by 10.0.0.2:4000", 2),
        "10.0.0.2-1.9": ("taken over", "taken over by 10.0.0.1:4000", 4),
        "10.0.0.1-3.9": ("open at the end", "open at the end", 60),
        "10.0.0.9-0": ("dropped", "dropped by the server", 30),
    }
    assert {lane["client"] for lane in connection_lanes(RowsAnalysis({"mqtt_connections": told}), 1)} == {"m"}


def test_every_client_has_a_lane_on_one_page_and_is_found_by_its_name() -> None:
    """A thousand clients; one that comes again and again takes no room from the others, and its last end is there."""
    told = [connection(number / 100, 30, f"10.0.0.{number % 250}", client_id=f"c{number:04}") for number in range(1000)]
    told += [connection(number / 10, number / 10 + 0.05, "10.9.9.9", client_id="again") for number in range(500)]
    source = RowsAnalysis({"mqtt_connections": told})
    assert lane_count(source) == 1001
    pages = [connection_lanes(source, 40, first) for first in range(0, 1001, 40)]
    names = [sorted({lane["client"] for lane in page}) for page in pages]
    assert sorted(name for page in names for name in page) == sorted({str(row["client_id"]) for row in told})
    drawn = [lane for lane in pages[0] if lane["client"] == "again"]
    assert drawn == pages[0][:BARS], "the worst comes first"
    assert (len(drawn), drawn[0]["connections"]) == (BARS, 500)
    assert round(drawn[-1]["t_end"] / 1e3 - START_NS / 1e9, 2) == 49.95
    assert {lane["client"] for lane in connection_lanes(source, containing="C0999")} == {"c0999"}
    assert (lane_count(source, "10.9.9.9"), lane_count(source, "' or true --")) == (1, 0)


@pytest.mark.parametrize("under", ["", "map", "rule", "wills"])
def test_levels_of_topics_add_up(mqtt: wirewitness.Analysis, under: str) -> None:
    branch = f"{under}/" if under else ""
    listed = mqtt.sql(topics(branch, SECOND_NS)).to_pylist()
    level = topic_tree(mqtt, [branch], SECOND_NS)[branch]
    if len(level.rows) == level.total:
        assert sum(row.facts["topics"] for row in level.rows) == len(listed)
    for column, of in (("published", "client_to_server"), ("sent_on", "server_to_client")):
        condition = f"starts_with(topic, '{branch}')" if under else "topic IS NOT NULL"
        whole = f"SELECT count(*) FROM mqtt_publishes WHERE {condition} AND direction = '{of}'"
        assert sum(row[column] for row in listed) == number(mqtt, whole)
    inside = number(mqtt, f"SELECT count(*) FROM ({publishes(branch)})")
    bins = publishes_over_time(mqtt, SECOND_NS, branch)
    assert sum(one["messages"] for one in bins) == inside


def test_commands_over_time_lose_none(mongo: wirewitness.Analysis) -> None:
    found = commands_over_time(mongo, SECOND_NS)
    assert sum(one["commands"] for one in found) == number(mongo, "SELECT count(*) FROM mongo_commands")
    timed = number(mongo, "SELECT count(*) FROM mongo_commands WHERE latency_ms IS NOT NULL")
    assert sum(one["exchanges"] for one in command_latency(mongo, SECOND_NS)) == timed


def test_commands_of_one_shape(mongo: wirewitness.Analysis) -> None:
    shape = mongo.sql("SELECT shape_id, count(*) AS n FROM mongo_commands WHERE shape_id IS NOT NULL GROUP BY 1 "
                      "ORDER BY n DESC LIMIT 1").to_pylist()[0]  # fmt: skip
    assert number(mongo, f"SELECT count(*) FROM ({commands_of(shape['shape_id'])})") == shape["n"]


def test_shapes_of_a_client_and_an_application_are_theirs(mongo: wirewitness.Analysis) -> None:
    addresses, apps = addresses_and_apps(mongo)
    assert set(apps) == set(mongo.sql("SELECT DISTINCT app_name FROM mongo_commands").column(0).to_pylist()) - {None}
    counted = 0
    for address in addresses:
        condition = commands_from(address)
        told = mongo.sql(f"SELECT sum(count) AS n FROM ({shapes_sql(every=True, condition=condition)})")
        counted += told.column(0)[0].as_py() or 0
        for shape in mongo.sql(shapes_sql(condition=condition)).to_pylist():
            assert shape["clients"] == address
            commands = commands_of(shape["shape_id"], condition)
            assert number(mongo, f"SELECT count(*) FROM ({commands})") == shape["count"]
    assert counted == number(mongo, "SELECT count(*) FROM mongo_commands WHERE command IS NOT NULL")
    assert number(mongo, f"SELECT count(*) FROM mongo_commands WHERE {commands_from(chr(39), 'no such')}") == 0


def test_several_shapes_over_time_lose_no_command(mongo: wirewitness.Analysis) -> None:
    listed = {row["shape_id"]: row for row in mongo.sql(shapes_sql(limit=4)).to_pylist()}
    found = shapes_over_time(mongo, SECOND_NS, list(listed))
    for shape_id, shape in listed.items():
        own = [row for row in found if row["shape_id"] == shape_id]
        assert sum(row["commands"] for row in own) == shape["count"]
        assert sum(row["sum_ms"] or 0 for row in own) == pytest.approx(shape["sum_ms"])
    assert shapes_over_time(mongo, SECOND_NS, []) == []
