"""Which side: what findings about requests and connections say of the way, the server and the client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tests.analyser.engine.rules.scenarios.build import at, exchange, remark, tcp_flow
from tests.analyser.engine.rules.scenarios.build_mqtt import connection as mqtt_connection
from tests.analyser.engine.rules.scenarios.build_mqtt import publish
from tests.analyser.engine.rules.scenarios.kafka_connections import connection, waits
from tests.analyser.engine.rules.scenarios.kafka_waits import WAIT_FIRES, carried, followed, held_up, only
from tests.analyser.engine.rules.scenarios.net import alive, alone, dead, reset
from tests.support.rows import connection_from_rows
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.analysis.evidence.rows import MessageId
from wirewitness.analyser.engine.rules.delivery import delivered
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.running import run
from wirewitness.analyser.network.facts.connection_ends import add_ends


def findings(code: str, **rows: Iterable[Mapping[str, Any]]) -> list[Finding]:
    con = connection_from_rows(rows)
    add_ends(con)
    return run(con, [RULES[code]])


def packets(found: Finding) -> list[int | None]:
    return [one.packet for one in found.evidence]


# NET101 -------------------------------------------------------------------------------------------------------------

PLACE = {"client_address": "10.1.0.1", "server_address": "10.1.0.100"}


def again(seconds: float, packet: int, flow_id: str = "dead", **more: Any) -> dict[str, Any]:
    more = {"direction": "client_to_server", "packet": packet, **more}
    return remark(flow_id, seconds, "tcp", "retransmission", **more)


def test_a_dropped_connection_is_told_with_its_times_its_packets_and_the_request_left_open() -> None:
    (found,) = findings(
        "NET101",
        flows=[alive(), dead(first_packet=7)],
        expert_infos=[
            again(30.0, 301), again(30.4, 305), again(31.2, 309), again(5.0, 50), again(30.5, 306, "alive"),
            again(30.6, 307, direction="server_to_client"),
        ],
        exchanges=[
            exchange("dead", 29.8, client_id="billing-1", lasts=None, **PLACE),
            exchange("dead", 9.0, client_id="billing-1", **PLACE),
            exchange("alive", 31.0, "Fetch", client_id="billing-1", lasts=None, **PLACE),
        ],
    )  # fmt: skip
    assert packets(found) == [7, 29_801, 301, 305, 309]
    assert "after 20.0 s of silence, from 2026-09-21 14:13:30 UTC on" in found.sentence
    assert "sent at 2026-09-21 14:13:50 UTC was sent 8 times and never ACKed" in found.sentence
    assert "Left without a response: 1 Produce." in found.sentence
    assert (found.numbers["idle_since"], found.numbers["found_dead"]) == (
        "2026-09-21T14:13:30.000Z", "2026-09-21T14:13:50.000Z",
    )  # fmt: skip
    assert found.numbers["requests_unanswered"] == 1


def test_a_dropped_connection_on_which_nothing_was_asked_names_no_request() -> None:
    (found,) = findings("NET101", flows=[alive(), dead()], expert_infos=[again(30.0, 301)])
    assert "Left without" not in found.sentence
    assert found.numbers["requests_unanswered"] == 0


def test_a_reset_of_somebody_between_is_shown_by_its_packet() -> None:
    marks = [remark("reset", 310, "tcp", "reset", packet=900), again(100, 400, "reset")]
    (found,) = findings("NET101", flows=[alive(), reset(60, 310)], expert_infos=marks)
    assert packets(found) == [1, 900]
    assert "A reset came at 2026-09-21 14:18:30 UTC in the name of the server" in found.sentence


def test_a_client_with_one_connection_is_judged_by_the_answers_to_others() -> None:
    (found,) = findings("NET101", **alone())
    assert "was sent 8 times and never ACKed, while the server responded to other clients." in found.sentence
    assert (found.confidence, found.numbers["kind"]) == ("medium", "alone")
    assert found.next_step.endswith("If no pause of this client ends well, the way itself is broken.")


def test_each_client_and_server_has_a_finding_of_its_own() -> None:
    other = {"client_address": "10.1.0.2"}
    flows = [alive(), dead(), alive(flow_id="c", **other), {**dead(), "flow_id": "d", **other}]
    assert [one.numbers["flows"] for one in findings("NET101", flows=flows)] == [["dead"], ["d"]]
    flows[2] = alive(flow_id="c", ts_last_from_server=at(12), **other)
    assert [one.numbers["flows"] for one in findings("NET101", flows=flows)] == [["dead"]]


# KAF302 -------------------------------------------------------------------------------------------------------------


def slow(name: str) -> Finding:
    """What the rule says of this scenario."""
    (scenario,) = (one for one in WAIT_FIRES if one.name == name)
    (found,) = findings("KAF302", **scenario.rows)
    return found


def test_a_process_that_stood_still_had_the_requests() -> None:
    found = slow("requests that the server's TCP had at the first try")
    assert "Its process stood still, for the server's TCP had all of them at the first try." in found.sentence
    assert found.confidence == "high"
    assert found.numbers["delivered_at_first_try"] == found.numbers["requests"]


def test_where_everything_was_sent_again_the_way_may_have_stood_still() -> None:
    found = slow("requests that were sent again while nobody was answered")
    assert "Its process stood still, or the way to it did, for segments of these connections" in found.sentence
    assert found.confidence == "medium"
    assert found.next_step.startswith("Look whether the broker's host or its link was off the network")
    assert found.numbers["delivered_at_first_try"] == 0


def test_of_one_side_nothing_is_said_of_the_way() -> None:
    found = slow("only one side of TCP was captured")
    assert "Its process stood still. It hit" in found.sentence
    assert found.numbers["delivery_unknown"] == found.numbers["requests"]


def test_a_late_fetch_is_measured_by_its_own_max_wait() -> None:
    found = slow("fetches that come two seconds after they may wait for 20 seconds")
    assert "up to 2,500 ms, where max_wait_ms allows 500 ms" in found.sentence
    assert "TCP delivered these requests at the first try: the broker had them, and was slow." in found.sentence
    assert (found.numbers["kind"], found.numbers["operations"], found.numbers["windows"]) == ("slow", ["Fetch"], 2)
    assert found.numbers["p99_ms"] == 2000


def test_the_follower_that_writes_waited_for_is_named() -> None:
    found = slow("writes that wait for a follower that stopped reading")
    assert (
        "broker 2 at 10.1.0.102 read nothing from this leader from 2026-09-21 14:13:50 UTC on, for 14" in found.sentence
    )
    assert (found.numbers["kind"], found.numbers["missing_replicas"]) == ("replicas", ["2 10.1.0.102"])
    assert "was slow." not in found.sentence
    assert found.next_step.startswith("Look at broker 2:")


def test_a_follower_that_reads_on_is_not_named() -> None:
    found = slow("writes that take long although the follower reads on")
    assert "broker 2" not in found.sentence
    assert found.numbers["kind"] == "slow"


def test_a_follower_holds_up_no_request_that_waits_for_the_leader_alone() -> None:
    (found,) = findings(
        "KAF302", exchanges=[*only("Metadata", held_up()[:640]), *followed((30.5, 45))], kafka_connections=carried(1)
    )
    assert found.numbers["kind"] == "slow"


# KAF303 -------------------------------------------------------------------------------------------------------------


def unanswered(*operations: str, lasts: float = 15.0, **more: Any) -> Finding:
    """One client's requests of a second each, which it gave up; a Produce unless told otherwise."""
    (found,) = findings(
        "KAF303",
        exchanges=[waits(1, 5 + n, name, None) for n, name in enumerate(operations or ("Produce",))],
        kafka_connections=[connection(1, 0, lasts, unanswered=1, last_status="unanswered", **more)],
    )
    return found


def test_a_throttled_request_waits_from_when_its_connection_is_read_again() -> None:
    found = unanswered(lasts=40.0, ts_muted_until=at(25), throttled=1)
    assert "The longest waited 15.0 s after 20.0 s of throttling, until the client closed" in found.sentence
    assert found.numbers["longest_ms"] == 15_000
    assert "throttling" not in unanswered(ts_muted_until=at(3), throttled=1).sentence


def test_a_request_that_was_sent_once_was_confirmed_within_a_second() -> None:
    sentence = unanswered(retransmitted_segments=0).sentence
    assert "Nothing had to be sent again: it had each of them within about a second." in sentence
    assert "within about a second" not in unanswered(retransmitted_segments=2).sentence


def test_a_request_that_was_lost_is_told_with_the_times_it_was_sent() -> None:
    lost = {"acked_by_server": 100, "retransmitted_segments": 6}
    found = unanswered(**lost, unheard_sends_to_server=7, ts_unheard_to_server=at(5.3))
    assert "lost on the way" in found.sentence
    assert "sent again in vain from 2026-09-21 14:13:25 UTC on, at most 7 times in total." in found.sentence
    assert "in vain" not in unanswered(**lost).sentence


def test_commits_wait_for_replicas_and_what_stands_behind_them_waits_too() -> None:
    found = unanswered("OffsetCommit", "Heartbeat")
    assert "the process did not respond, or a replica did not." in found.sentence
    assert (found.numbers["waits_for_replicas"], found.severity) == ("c1", "warning")
    assert found.next_step.startswith("Look whether all replicas of __consumer_offsets")


@pytest.mark.parametrize(
    ("operations", "more"),
    [
        pytest.param(("Heartbeat", "OffsetCommit"), {}, id="what comes first waits for no replica"),
        pytest.param(("OffsetCommit",), {"acked_by_server": 100}, id="it never arrived"),
    ],
)
def test_what_waits_for_no_replica_is_told_of_the_broker_or_the_way(operations: Any, more: Any) -> None:
    found = unanswered(*operations, **more)
    assert "replica" not in found.sentence
    assert found.numbers["waits_for_replicas"] is None


# TCP104 -------------------------------------------------------------------------------------------------------------

REFUSED = {"handshake": "refused", "handshake_ms": None, "bytes_to_server": 0, "bytes_to_client": 0, "protocol": None}
SERVER = {"server_address": "10.1.0.100", "server_port": 9092}


def asked(flow_id: str, seconds: float, client_id: str | None, address: str = "10.1.0.1") -> dict[str, Any]:
    return exchange(flow_id, seconds, client_id=client_id, client_address=address, **SERVER)


def test_who_is_refused_is_named_by_what_its_address_told_that_server() -> None:
    flows = [tcp_flow("ok"), tcp_flow("no", ts_first=at(5), **REFUSED)]
    (found,) = findings("TCP104", flows=flows, exchanges=[asked("ok", 1, "billing-1"), asked("ok", 2, "billing-1")])
    assert "from 10.1.0.1 (where billing-1 runs)." in found.sentence
    assert found.numbers["clients"] == [{"address": "10.1.0.1", "client_id": "billing-1"}]


def test_with_two_clients_at_an_address_nobody_knows_which_one_was_refused() -> None:
    flows = [tcp_flow("ok"), tcp_flow("ok2"), tcp_flow("no", ts_first=at(5), **REFUSED)]
    (found,) = findings("TCP104", flows=flows, exchanges=[asked("ok", 1, "billing-1"), asked("ok2", 2, "shop")])
    assert "from 10.1.0.1." in found.sentence
    assert found.numbers["clients"] == []
    assert found.numbers["addresses"] == ["10.1.0.1"]


def test_what_a_slow_connection_says_of_its_client_goes_before_its_address() -> None:
    flows = [tcp_flow("ok"), tcp_flow("slow", handshake_ms=1031.0)]
    (found,) = findings("TCP104", flows=flows, exchanges=[asked("ok", 1, "billing-1"), asked("slow", 2, "shop")])
    assert "from 10.1.0.1 (shop); it accepts" in found.sentence


def test_a_name_of_another_server_says_nothing() -> None:
    flows = [tcp_flow("ok", server_port=9093), tcp_flow("no", ts_first=at(5), **REFUSED)]
    (found,) = findings("TCP104", flows=flows, exchanges=[asked("ok", 1, "billing-1") | {"server_port": 9093}])
    assert found.numbers["clients"] == []


# MQT103 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("messages", "words"), [(5, "Then the client closed"), (0, "Then the connection was closed.")])
def test_of_the_clients_direction_alone_nobody_knows_who_closed_first(messages: int, words: str) -> None:
    silent = mqtt_connection(
        ts_last_from_client=at(100), observed_until=at(191), closed_by="client", server_messages=messages
    )
    (found,) = findings("MQT103", mqtt_connections=[silent])
    assert words in found.sentence


# MQT105 -------------------------------------------------------------------------------------------------------------

TOLD = {"transport": "tcp", "retransmitted_segments": 3}


def sent(offset: int, seconds: float = 5, **more: Any) -> dict[str, Any]:
    """A QoS 1 message of 20 bytes without PUBACK, at this place of its stream."""
    place = MessageId("ff1f78d597a5183e", int(more.get("direction") == "server_to_client"), offset).text()
    more = {"message_id": place, "packet_identifier": offset, **more}
    return publish(seconds, "a", qos=1, handshake="no_puback", length_bytes=20, **more)


def no_puback(connection: dict[str, Any], *publishes: dict[str, Any]) -> Finding:
    (found,) = findings("MQT105", mqtt_connections=[mqtt_connection(**connection)], mqtt_publishes=publishes)
    return found


def test_a_publish_that_tcp_confirmed_is_in_the_servers_hands() -> None:
    found = no_puback(TOLD | {"acked_by_server": 120}, sent(100))
    assert found.sentence.startswith("Server 10.2.0.9:1883 never sent PUBACK for 1 message of QoS 1 on room/heat.")
    assert "They were ACKed by TCP, so the process did not reply." in found.sentence
    assert found.next_step == "Look at the server 10.2.0.9:1883: it has it in hand and did not go on."
    assert (found.numbers["requests_delivered"], found.numbers["dead_path"]) == (1, False)


def test_a_publish_that_never_arrived_accuses_the_way() -> None:
    found = no_puback(TOLD | {"acked_by_server": 119}, sent(100))
    assert "never reached server 10.2.0.9:1883: its TCP did not ACK them" in found.sentence
    assert "never sent PUBACK" not in found.sentence
    assert found.next_step.startswith("Look at the way between the two")
    assert (found.numbers["requests_not_delivered"], found.numbers["dead_path"]) == (1, True)


def test_of_several_publishes_those_that_arrived_are_counted() -> None:
    found = no_puback(TOLD | {"acked_by_server": 125}, sent(100), sent(120, 6))
    assert "TCP ACKed 1 of them; the others never arrived." in found.sentence


def test_what_a_subscriber_has_not_acknowledged_is_looked_for_in_its_own_confirmations() -> None:
    found = no_puback(TOLD | {"acked_by_client": 120, "acked_by_server": 0}, sent(100, direction="server_to_client"))
    assert "They were ACKed by TCP: the client has them and sent no MQTT acknowledgement." in found.sentence
    assert "acknowledges by hand" in found.next_step


def test_what_a_subscriber_never_got_is_no_fault_of_the_server() -> None:
    found = no_puback(TOLD | {"acked_by_client": 119, "acked_by_server": 0}, sent(100, direction="server_to_client"))
    assert "never reached client sensor-1" in found.sentence
    assert "so the path was dead or the client gone." in found.sentence


@pytest.mark.parametrize(
    ("less", "next_step"),
    [
        ({"retransmitted_segments": 0}, "acked_by_server"),
        ({"gap_bytes": 5}, "Capture once more"),
        ({"acked_by_server": None}, "acked_by_server"),
        ({"transport": "websocket"}, "acked_by_server"),
    ],
)
def test_where_a_confirmation_may_be_missing_nothing_is_said_of_the_way(less: dict[str, Any], next_step: str) -> None:
    found = no_puback(TOLD | {"acked_by_server": 119} | less, sent(100))
    assert "Its TCP" not in found.sentence
    assert "never reached" not in found.sentence
    assert next_step in found.next_step


def test_a_message_that_arrived_once_arrived_however_often_it_was_sent() -> None:
    again = sent(300, 20, dup=True, packet_identifier=100, payload_crc32=5000, first_message_id="x")
    found = no_puback(TOLD | {"acked_by_server": 120}, sent(100) | {"handshake": "resent"}, again)
    assert "They were ACKed by TCP" in found.sentence
    assert found.numbers["sends_most"] == 2


# Where a message lies in its stream ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("confirmed", "arrived"), [(45, False), (46, False), (47, True), (None, None)])
def test_a_message_arrived_where_its_last_byte_is_confirmed(confirmed: int | None, arrived: bool | None) -> None:
    """Its offset is the number behind the last dash, as ids of messages have it."""
    assert delivered(MessageId("ff1f78d597a5183e", 0, 45).text(), 2, confirmed) is arrived


# TCP103 -------------------------------------------------------------------------------------------------------------

RESET = {"reset_by": "server", "closed_by": "server", "bytes_to_server": 5000, "acked_by_server": 5000}
STREAMS = {"bytes_to_client": 5000, "acked_by_client": 5000}


def waited(flow_id: str, **more: Any) -> dict[str, Any]:
    """A request without a response, at offset 1000 of the stream."""
    more = {"request_message_id": f"{flow_id}-c-1000", "request_bytes": 200, "lasts": None, "client_id": "w", **more}
    return exchange(flow_id, 1.0, **more)


def resets(flow: Mapping[str, Any], *flow_ids: str, **more: Any) -> list[Finding]:
    return findings(
        "TCP103",
        flows=[tcp_flow(one, **STREAMS, **flow) for one in flow_ids],
        expert_infos=[remark(one, 2, "tcp", "reset") for one in flow_ids],
        exchanges=[waited(one, **more) for one in flow_ids],
    )


def test_resets_of_one_client_are_one_finding_and_what_was_not_sent_whole_never_arrived() -> None:
    (found,) = resets(RESET, "a", "b", "c", request_bytes=450_000)
    assert found.severity == "warning"
    assert "reset 3 connections of client w" in found.sentence
    assert "They were not sent whole (450,000 bytes by their length)." in found.sentence
    assert "ACKed" not in found.sentence
    assert (found.numbers["connections"], found.numbers["requests_cut"], found.numbers["requests_delivered"]) == (
        3,
        3,
        0,
    )


def of_clients(count: int, every_s: float) -> list[Finding]:
    flows = [tcp_flow(str(n), **STREAMS, **RESET, client_address=f"10.1.0.{n}") for n in range(count)]
    marks = [remark(str(n), 2 + n * every_s, "tcp", "reset") for n in range(count)]
    return findings("TCP103", flows=flows, expert_infos=marks, exchanges=[waited(str(n)) for n in range(count)])


def test_a_server_that_stops_is_one_finding_and_names_no_client() -> None:
    (found,) = of_clients(4, 0.5)
    assert "reset 4 connections of 4 clients within 1.5 s while 4 requests" in found.sentence
    assert "address" not in found.numbers
    assert len(found.numbers["clients"]) == 4


@pytest.mark.parametrize(("clients", "every_s"), [(2, 0.5), (4, 3.0)])
def test_few_clients_or_one_after_the_other_are_findings_of_their_own(clients: int, every_s: float) -> None:
    assert len(of_clients(clients, every_s)) == clients


def test_a_request_that_was_sent_whole_arrived_when_the_server_acked_it() -> None:
    (found,) = resets(RESET, "a")
    assert "The server's TCP ACKed it, so the process had not responded by then." in found.sentence
    (found,) = resets(RESET | {"acked_by_server": 1100}, "a")
    assert "The server's TCP had not ACKed it before." in found.sentence


def test_a_message_of_the_server_arrived_when_the_client_acked_it() -> None:
    of_server = {"direction": "server_to_client", "request_message_id": "a-s-1000", "operation": "PUBLISH"}
    flow = {
        "protocol": "mqtt",
        "reset_by": "client",
        "closed_by": "client",
        "acked_by_server": 0,
        "bytes_to_server": 900,
    }
    (found,) = resets(flow, "a", **of_server)
    assert found.severity == "info"
    assert "1 message of the server had no response (PUBLISH). The client's TCP ACKed it" in found.sentence


def test_a_client_that_resets_while_it_sends_did_not_deliver() -> None:
    (found,) = resets({"reset_by": "client", "closed_by": "client", "bytes_to_server": 1100}, "a")
    assert found.severity == "info"
    assert "It was not sent whole" in found.sentence


def test_what_may_lie_in_a_gap_is_no_warning() -> None:
    (found,) = resets(RESET | {"gap_bytes": 900}, "a")
    assert (found.severity, found.confidence) == ("info", "medium")
