"""Incidents of MQTT: the list, plans in a library's names; with real brokers (make lab-test) a few of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.catalogue import all_faults
from tests.support.printed import printed

# Short ones of each kind; each runs beside the others, and 60 s are for all of them.
SAMPLE = ("overlapping", "session_lost", "retained_command", "takeover", "will_flaps", "session_kept", "shared")


def test_every_incident_says_what_happens() -> None:
    assert all(fault.about.endswith(".") for fault in all_faults().values())


def test_properties_of_a_plan_have_the_librarys_names() -> None:
    wanted = mqtt.plan(
        "a", 5, mqtt.publish("t", properties={"MessageExpiryInterval": 2}), properties={"UserProperty": 1}
    )
    found = {library: mqtt.renamed(library, json.loads(json.dumps(wanted))) for library in mqtt.LIBRARIES}
    names = {library: list(plan["steps"][0]["properties"]) for library, plan in found.items()}
    assert names == {"paho": ["MessageExpiryInterval"], "go": ["MessageExpiry"], "node": ["messageExpiryInterval"]}
    assert found["node"]["properties"] == {"UserProperty": 1}


@pytest.mark.lab
@pytest.mark.timeout(600)
def test_incidents_name_their_culprit_and_healthy_runs_are_silent(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    from tests.lab.incidents.mqtt import __main__ as make
    from tests.lab.incidents.trial import table_of, tried
    from tests.lab.shared_runs import require_lab

    require_lab()
    made = tmp_path / "made"
    assert make.main([*SAMPLE, "--output", str(made), "--seed", "11", "--processes", "4"]) == 0
    verdicts = tried(made, "mqtt")
    printed("incidents of MQTT", table_of("mqtt"), record_property)
    whole = [one for one in verdicts if one.variant is None]
    assert len(whole) == len(SAMPLE)
    assert [one for one in whole if one.result not in ("named first", "silent")] == []
    assert [one.wrong for one in verdicts if one.wrong] == []
