"""What the analyser says of the samples of TLS equals what their makers know, and each opens without a key log."""

from __future__ import annotations

import hashlib
import struct
import tomllib
from collections.abc import Callable, Collection, Iterator
from functools import cache
from pathlib import Path
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


PACKET_BLOCK, SECRETS_BLOCK = 6, 10
OPENING_PACKETS = 12
SYN, ACK = 2, 16
EVERY = 18
CASES = [
    pytest.param(
        entry["file"], keys, index % EVERY,
        id=f"{entry['file']}-{'keys' if keys else 'no keys'}-{index % EVERY}",
    )
    for index in range(1, EVERY + 1)
    for entry in ENTRIES
    for keys in (True, False)
]  # fmt: skip
Accused = Callable[[str, bool, Collection[int], Path], set[str]]


def blocks(name: str) -> Iterator[tuple[int, bytes]]:
    """The blocks of a sample, which are in little-endian order."""
    content, position = (FOLDER / name).read_bytes(), 0
    while position < len(content):
        kind, size = struct.unpack_from("<II", content, position)
        yield kind, content[position : position + size]
        position += size


def segments(name: str) -> list[tuple[frozenset[bytes], int]]:
    """Of each packet, which is IPv4 and TCP, both ends and the flags."""
    found = []
    for frame in (block[28:] for kind, block in blocks(name) if kind == PACKET_BLOCK):
        start = 14 + (frame[14] & 15) * 4
        ends = frame[26:30] + frame[start : start + 2], frame[30:34] + frame[start + 2 : start + 4]
        found.append((frozenset(ends), frame[start + 13]))
    return found


def openings(name: str) -> list[int]:
    """The first packets of the first two connections and of the last one, counted from 0."""
    seen: dict[frozenset[bytes], list[int]] = {}
    for number, (ends, _) in enumerate(segments(name)):
        seen.setdefault(ends, []).append(number)
    return [number for own in {**dict([*seen.items()][:2]), **dict([*seen.items()][-1:])}.values()
            for number in own[:OPENING_PACKETS]]  # fmt: skip


def critical(name: str, keys: bool, lost: Collection[int], target: Path) -> set[str]:
    """Codes of critical findings where the capture lacks these packets."""
    number, kept = -1, []
    for kind, block in blocks(name):
        number += kind == PACKET_BLOCK
        if (kind != PACKET_BLOCK or number not in lost) and (keys or kind != SECRETS_BLOCK):
            kept.append(block)
    target.write_bytes(b"".join(kept))
    with wirewitness.read(target) as analysis:
        found = analysis.findings()
    return set(found[found.severity == "critical"].code)


@pytest.fixture(scope="module")
def accused(tmp_path_factory: pytest.TempPathFactory) -> Accused:
    """What `critical` tells that it does not tell of the whole sample, which is read once, and only if it tells any."""
    folder = tmp_path_factory.mktemp("whole")

    @cache
    def whole(name: str, keys: bool) -> frozenset[str]:
        return frozenset(critical(name, keys, (), folder / name))

    def of_less(name: str, keys: bool, lost: Collection[int], target: Path) -> set[str]:
        found = critical(name, keys, lost, target)
        return found - whole(name, keys) if found else found

    return of_less


@pytest.mark.parametrize(("name", "keys", "turn"), CASES)
def test_a_packet_that_the_capture_lacks_accuses_nobody(
    name: str, keys: bool, turn: int, tmp_path: Path, accused: Accused
) -> None:
    """Each of the first packets of connections in turn; one case tries every eighteenth."""
    for number in openings(name)[turn::EVERY]:
        assert accused(name, keys, {number}, tmp_path / name) == set(), number


@pytest.mark.parametrize("name", [entry["file"] for entry in ENTRIES])
@pytest.mark.parametrize("flags", [(SYN,), (SYN, SYN | ACK)], ids=["the client's SYN", "both SYNs"])
def test_connections_whose_start_was_not_captured_accuse_nobody(
    flags: Collection[int], name: str, tmp_path: Path, accused: Accused
) -> None:
    lost = {number for number, (_, own) in enumerate(segments(name)) if own & (SYN | ACK) in flags and own & SYN}
    for keys in (True, False):
        assert accused(name, keys, lost, tmp_path / name) == set(), keys
