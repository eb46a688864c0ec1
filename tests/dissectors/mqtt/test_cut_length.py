"""A PUBLISH whose length is the last thing in its stream, whole, cut or impossible."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.mqtt_encode import connack, connect, publish
from tests.support.packets import ACK, FIN, pcap
from tests.support.wire import Talk
from wirewitness.analyser import read


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("length_bytes", range(5))
@pytest.mark.parametrize("ends", [True, False], ids=["FIN", "capture ends"])
def test_what_is_there_is_told(tmp_path: Path, level: int, length_bytes: int, ends: bool) -> None:
    first, answer = connect(level), connack(properties=() if level == 5 else None)
    broken = publish("t", b"x" * 300)[:1] + b"\xff" * length_bytes
    talk = Talk(server=("10.0.0.2", 1883)).handshake().send(True, 0, first).send(False, 0, answer, ack=len(first))
    talk.send(True, len(first), broken)
    if ends:
        talk.send(True, len(first) + len(broken), flags=FIN | ACK)
        talk.send(False, len(answer), flags=FIN | ACK, ack=len(first) + len(broken) + 1)
    path = tmp_path / "broken.pcap"
    path.write_bytes(pcap(talk.packets, nanoseconds=True))
    with read([path]) as found:
        rows = found.arrow("messages").select(["operation", "error"]).to_pylist()
        codes = found.arrow("expert_infos").column("code").to_pylist()
    assert [row["operation"] for row in rows] == ["CONNECT", "CONNACK", "PUBLISH"]
    assert rows[-1]["error"]
    assert ("remaining_length_too_long" in codes) == (length_bytes == 4)
