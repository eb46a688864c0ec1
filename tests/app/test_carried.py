"""Messages inside WebSocket on the command line: shown without mask, extracted, credentials overwritten."""

from __future__ import annotations

import csv
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.app.program import run
from tests.support.packets import pcap
from tests.support.websocket import WebSocketTalk

PASSWORD = b"correct horse battery staple"
BASIC = "am9lOmNvcnJlY3QgaG9yc2U="


def login() -> bytes:
    """SaslHandshake and SaslAuthenticate with a password, as a Kafka client sends them."""

    def request(api_key: int, correlation_id: int, body: bytes) -> bytes:
        inner = struct.pack(">hhih", api_key, 0 if api_key == 36 else 1, correlation_id, 3) + b"app" + body
        return struct.pack(">i", len(inner)) + inner

    shake = request(17, 1, struct.pack(">h", 5) + b"PLAIN")
    return shake + request(36, 2, struct.pack(">i", len(PASSWORD) + 5) + b"\0joe\0" + PASSWORD)


@pytest.fixture(params=["masked", "compressed", "in fragments"])
def talk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> WebSocketTalk:
    """A Kafka connection inside WebSocket; the password comes in two packets, or two frames."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    fields = [("Authorization", f"Basic {BASIC}"), ("Cookie", "session=hush-hush-cookie")]
    ws = WebSocketTalk("kafka", compressed=request.param == "compressed", header_fields=fields).open()
    data = login()
    if request.param == "in fragments":
        ws.binary(True, data[: len(data) - 10], fin=False).ping(False).continued(True, data[len(data) - 10 :])
    else:
        ws.binary(True, data, cut=[40])
    return ws


@pytest.fixture
def capture(talk: WebSocketTalk, tmp_path: Path) -> Path:
    path = tmp_path / "login.pcap"
    path.write_bytes(pcap(talk.packets, nanoseconds=True))
    return path


def messages(capture: Path) -> list[dict[str, str]]:
    result = run("table", "messages", capture, "--format", "csv")
    return list(csv.DictReader(result.stdout.decode().splitlines()))


def shown(capture: Path, message_id: str) -> Any:
    result = run("show", capture, message_id, "--format", "json")
    assert (result.returncode, result.stderr) == (0, b"")
    (message,) = json.loads(result.stdout)["messages"]
    return message


def test_show_gives_the_inner_bytes(capture: Path) -> None:
    shake, authenticate = messages(capture)
    assert [row["operation"] for row in (shake, authenticate)] == ["SaslHandshake", "SaslAuthenticate"]
    found = shown(capture, shake["message_id"])
    assert bytes.fromhex(found["hex"]) == login()[: int(shake["length_bytes"])]
    assert {field["name"]: field["value"] for field in found["fields"]}["mechanism"] == "PLAIN"
    found = shown(capture, authenticate["message_id"])
    assert [segment["packet"] for segment in found["segments"]][-1] == int(authenticate["packet_last"])
    assert PASSWORD.hex() not in found["hex"]


def test_a_password_of_mqtt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    strings = b"".join(struct.pack(">H", len(one)) + one for one in (b"meter-1", b"joe", PASSWORD))
    body = b"\0\x04MQTT\x04\xc2\0\x3c" + strings
    ws = WebSocketTalk().open().binary(True, b"\x10" + bytes([len(body)]) + body, cut=[54])
    capture, target = tmp_path / "mqtt.pcap", tmp_path / "redacted.pcap"
    capture.write_bytes(pcap(ws.binary(False, b"\x20\x02\0\0").packets, nanoseconds=True))
    connect, _ = messages(capture)
    assert (connect["operation"], connect["protocol"]) == ("CONNECT", "mqtt")
    assert PASSWORD[:4].hex() not in shown(capture, connect["message_id"])["hex"]
    assert run("extract", capture, "--flow", connect["flow_id"], "-o", target, "--redact").returncode == 0
    assert (_unmasked(capture.read_bytes()), _unmasked(target.read_bytes())) == (True, False)
    assert messages(target)[0]["client_id"] == "meter-1"


def test_a_connection_in_two_files(talk: WebSocketTalk, tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    for name, packets in (("a.pcap", talk.packets[:6]), ("b.pcap", talk.packets[6:])):
        (folder / name).write_bytes(pcap(packets, nanoseconds=True))
    _, authenticate = messages(folder)
    assert authenticate["file"].endswith("b.pcap")
    found = shown(folder, authenticate["message_id"])
    assert (found["operation"], found["length_bytes"]) == ("SaslAuthenticate", int(authenticate["length_bytes"]))


def test_extract_takes_the_packets(capture: Path, tmp_path: Path) -> None:
    row = messages(capture)[-1]
    target = tmp_path / "evidence.pcap"
    assert run("extract", capture, "--message", row["message_id"], "-o", target).returncode == 0
    assert target.stat().st_size > 300


def test_redacted_packets_hold_no_credential(talk: WebSocketTalk, capture: Path, tmp_path: Path) -> None:
    row = messages(capture)[-1]
    target = tmp_path / "redacted.pcap"
    result = run("extract", capture, "--flow", row["flow_id"], "-o", target, "--redact")
    assert result.returncode == 0
    before, after = capture.read_bytes(), target.read_bytes()
    for secret in (BASIC.encode(), b"hush-hush-cookie", b"hush-hush-query"):
        assert (secret in before, secret in after) == (True, False)
    assert b"Sec-WebSocket-Key" in after
    # What is left decodes without the password: nothing unmasks to it.
    for row in messages(target):
        if row["operation"] == "SaslAuthenticate":
            result = run("show", target, row["message_id"], "--format", "json", "--payload")
            assert PASSWORD[:6].hex() not in result.stdout.decode()
    assert (_unmasked(before), _unmasked(after)) == (not talk.compressed, False)


def _unmasked(capture: bytes) -> bool:
    """Is a part of the password there under the mask of any frame? A mask repeats every four bytes."""
    differences = bytes(a ^ b for a, b in zip(PASSWORD[4:], PASSWORD[:-4], strict=True))
    masked = bytes(a ^ b for a, b in zip(capture[4:], capture[:-4], strict=True))
    return differences[:12] in masked
