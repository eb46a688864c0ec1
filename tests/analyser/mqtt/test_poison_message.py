"""What is in flight beside a message that ends each connection is told with it."""

from __future__ import annotations

from tests.analyser.engine.rules.scenarios.mqtt_waiting import over_connections
from tests.analyser.engine.rules.scenarios.scenario import fires
from tests.analyser.engine.rules.test_scenarios import findings_of


def test_messages_beside_it_make_no_finding_of_their_own() -> None:
    rows = over_connections(5, 4, closed_by="server")
    sent = rows["mqtt_publishes"]
    beside = [
        row | {"packet_identifier": 8, "payload_crc32": 2, "message_id": f"{row['message_id']}b", "ts": row["ts"] + 9}
        for row in sent[1:]
    ]
    rows["mqtt_publishes"] = sorted([*sent, *beside], key=lambda row: row["ts"])
    found = [one for one in findings_of(fires("MQT124", "warning", "two at once", **rows)) if one.code == "MQT124"]
    assert [(one.numbers["connections"], one.numbers["beside"]) for one in found] == [(5, 1)]
