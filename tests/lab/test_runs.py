"""Which scenarios a word names, and that each is a module as the lab wants it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab import runs
from tests.lab.places import LAB_DIR


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        pytest.param("kafka_sasl", ["kafka_sasl"], id="full name"),
        pytest.param("sasl", ["kafka_sasl"], id="short name"),
        pytest.param("healthy", ["kafka_healthy", "mongo_healthy", "mqtt_healthy"], id="in each protocol"),
        pytest.param("old_clients", ["kafka_old_clients"], id="short name of two words"),
        pytest.param("mqtt", [f"mqtt_{name}" for name in runs.MQTT], id="one protocol"),
        pytest.param("kafka", [f"kafka_{name}" for name in runs.KAFKA], id="another protocol"),
        pytest.param("clients", [], id="part of a name"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_words_name_scenarios(word: str, meant: list[str]) -> None:
    assert runs.names_meant(word) == meant


@pytest.mark.parametrize("name", runs.SCENARIOS)
def test_a_scenario_names_its_servers_and_clients(name: str) -> None:
    scenario = runs.load_scenario(name)
    assert name.startswith(f"{scenario.SERVER.protocol}_")
    assert scenario.SERVER.name
    assert scenario.CLIENTS
    hosts = [*scenario.SERVER.host_names, *scenario.HOSTS]
    assert len(set(hosts)) == len(hosts)


@pytest.mark.parametrize("lock", sorted(LAB_DIR.glob("clients/*/package-lock.json")), ids=lambda path: path.parent.name)
def test_a_lock_file_names_no_registry(lock: Path) -> None:
    assert '"resolved"' not in lock.read_text()
    assert "omit-lockfile-registry-resolved=true" in (lock.parent / ".npmrc").read_text()
