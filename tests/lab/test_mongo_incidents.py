"""Incidents of MongoDB: each says what happens; with real servers (make lab-test) a few are made and judged."""

from __future__ import annotations

import inspect
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab import net
from tests.lab.clients import CLIENTS_DIR, mongo_workers
from tests.lab.incidents import staged
from tests.lab.incidents.mongo import __main__ as mongo
from tests.lab.incidents.mongo.incident import Incident
from tests.lab.incidents.verdict import Said, wrong_with
from tests.support.printed import printed

# Short ones of each kind, by driver.
SAMPLE = {
    "go": ("stale_read",),
    "java": ("write_to_secondary", "transaction_abandoned"),
    "node": ("tools",),
}
# Where each driver's program lists its works: file, and the words that the list begins and ends with.
TABLES = {
    "pymongo": ("python/mongo_worker.py", "WORKS = {", ")}"),
    "node": ("node_mongo/worker.js", "const WORKS = {", "};"),
    "go": ("go_mongo/works.go", "var works = ", "\n}"),
    "java": ("java_mongo/Works.java", "known = Map.ofEntries(", ");"),
}


def test_every_incident_says_what_happens() -> None:
    assert all(inspect.getdoc(fault) for fault in mongo.FAULTS)
    assert len({fault.__name__ for fault in mongo.FAULTS}) == len(mongo.FAULTS)
    assert set(mongo.ANY_SERVER) < set(mongo.FAULTS)


@pytest.mark.parametrize("driver", mongo_workers.DRIVERS)
def test_every_driver_knows_every_work(driver: str) -> None:
    file, begins, ends = TABLES[driver]
    table = (CLIENTS_DIR / file).read_text().partition(begins)[2].partition(ends)[0]
    wanted = set(mongo_workers.WORKS) - (set() if driver == "pymongo" else set(mongo_workers.PYTHON_ONLY))
    assert wanted <= set(re.findall(r"\w+", table))


def test_connection_strings_name_the_member_and_what_is_asked_for(tmp_path: Path) -> None:
    hosts = {"server": net.Host("server", "n0", "10.9.8.7")}
    it = Incident(hosts, tmp_path, random.Random(3), ("go",))
    assert it.uri() == "mongodb://10.9.8.7:27017/?directConnection=true"
    assert it.compression("go") == {}
    it.compressors = ("zlib",)
    drawn = [it.compression("node") for _ in range(50)]
    assert {} in drawn
    assert {"compressors": "zlib"} in drawn
    assert it.uri("10.9.8.7:1", "a:b@", {"x": 1}) == "mongodb://a:b@10.9.8.7:1/?directConnection=true&x=1"


def test_the_truth_says_how_busy_the_machine_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = {"server": net.Host("server", "n0", "10.9.8.7")}
    told = tmp_path / "cpu"
    monkeypatch.setattr(staged, "PRESSURE", told)
    assert Incident(hosts, tmp_path, random.Random(3), ("go",)).host_busy() is None
    told.write_text("some avg10=1.00 avg60=1.00 avg300=1.00 total=1000\nfull avg10=0.00 total=5\n")
    it = Incident(hosts, tmp_path, random.Random(3), ("go",))
    told.write_text("some avg10=1.00 avg60=1.00 avg300=1.00 total=900001000\nfull avg10=0.00 total=5\n")
    assert it.host_busy() == 1.0
    truth = it.story("x", (0, 1, 2), 0)
    assert (truth["facts"]["host_busy"], truth["allowed"]) == (1.0, ["MON101"])
    said = Said("MON101", "warning", "find took longer", "find took longer")
    assert wrong_with(truth, said) is None
    assert wrong_with({**truth, "allowed": []}, said) == "MON101 in a healthy run: find took longer"


@pytest.mark.lab
@pytest.mark.timeout(600)
def test_incidents_name_their_culprit_and_healthy_runs_are_silent(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    from tests.lab.incidents.trial import table_of, tried
    from tests.lab.shared_runs import require_lab

    require_lab()
    made = tmp_path / "made"
    for driver, names in SAMPLE.items():
        words = [*names, "--no-ferretdb", "--seed", "5", "--drivers", driver, "--processes", "2", "--output", str(made)]
        assert mongo.main(words) == 0
    verdicts = tried(made, "mongo")
    printed("incidents of MongoDB", table_of("mongo"), record_property)
    whole = [one for one in verdicts if one.variant is None]
    assert len(whole) == sum(map(len, SAMPLE.values()))
    assert [one for one in whole if one.result not in ("named first", "silent")] == []
    assert [one.wrong for one in verdicts if one.wrong] == []
