"""What the analyser says of the samples of TLS equals what their makers know, and each opens without a key log."""

from __future__ import annotations

import hashlib
import tomllib
from typing import Any

import pytest

import wirewitness
from tests.conftest import SAMPLES

FOLDER = SAMPLES / "tls"
ENTRIES: list[dict[str, Any]] = tomllib.loads((FOLDER / "MANIFEST.toml").read_text())["sample"]
EACH = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["file"])


def test_every_sample_has_its_entry() -> None:
    assert {path.name for path in FOLDER.glob("*.pcapng")} == {entry["file"] for entry in ENTRIES}
    for entry in ENTRIES:
        content = (FOLDER / entry["file"]).read_bytes()
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (entry["sha256"], entry["size_bytes"])


@EACH
def test_rules_about_tls_say_what_the_clients_met(entry: dict[str, Any]) -> None:
    with wirewitness.read(FOLDER / entry["file"]) as analysis:
        found, flows = analysis.findings(), analysis.table("flows")
        messages = analysis.table("messages")
    codes = set(found[found.severity != "info"].code)
    assert {code for code in codes if code.startswith("TLS")} == set(entry["expected_detectors"])
    assert codes - set(entry["expected_detectors"]) <= {"TCP103"}
    assert set(flows.tls_decryption) == {"decrypted"}
    refused = flows[flows.tls_handshake == "refused by server"]
    assert len(refused) == entry["facts"]["broker_refused"]
    assert set(flows.tls_handshake) <= {"complete", "refused by server"}
    assert set(flows.server_port) == {entry["facts"]["port"]}
    assert messages[messages.error.notna() & messages.complete].empty
    assert len(messages) > 5


def test_documents_of_mongo_are_read_through_tls() -> None:
    with wirewitness.read(FOLDER / "mongo_tls.pcapng") as analysis:
        commands = analysis.table("mongo_commands")
    own = commands[commands.collection == "carts"]
    assert list(own.command) == ["insert", "find"]
    assert list(own.n.dropna()) == [2]
    assert list(own.documents_returned.dropna()) == [2]
    assert set(commands.driver) == {"PyMongo|c"}


def test_a_failed_mutual_handshake_names_certificate_and_reason() -> None:
    with wirewitness.read(FOLDER / "kafka_mutual_tls_failed.pcapng") as analysis:
        told = analysis.findings()
    own = sorted(told[told.code == "TLS107"].sentence)
    assert len(own) == 2
    assert "refuses the certificate of 10.77.0.11 (alert certificate_unknown)" in own[0]
    assert "It is CN=billing,O=Example, issued by CN=Other CA,O=Example" in own[0]
    assert "wants a certificate of its clients, and 10.77.0.11 sends none (alert bad_certificate), twice" in own[1]
    assert set(told[told.code.isin(["TLS101", "TLS107"])].incident_id) == set(
        told[told.code == "TLS107"].incident_id.iloc[:1]
    )
