"""The reader of tshark's output: pieces of any size, packets that are too large, output that breaks off."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from wirewitness.reports.report.tshark import TsharkError, find_tshark
from wirewitness.reports.report.tshark import tshark as module
from wirewitness.reports.report.tshark.check import messages
from wirewitness.reports.report.tshark.trees import Packet


def printed(*packets: dict[str, Any]) -> bytes:
    """A list as tshark prints it."""
    inner = ",\n".join("\n".join(f"  {line}" for line in json.dumps(one, indent=2).splitlines()) for one in packets)
    return f"[\n{inner}\n]\n".encode()


def packet(number: int, **kafka: str) -> dict[str, Any]:
    layers = {
        "frame": {"frame.number": str(number), "frame.time_epoch": "1795173818.530020640"},
        "ip": {"ip.src": "10.0.0.1", "ip.dst": "10.0.0.2"},
        "tcp": {"tcp.srcport": "40000", "tcp.dstport": "9092", "tcp.stream": "0"},
        "kafka": {"kafka.len": "10", "kafka.correlation_id": str(number), **kafka},
    }
    return {"_index": "packets", "_source": {"layers": layers}}


class Drops(io.BytesIO):
    """Gives a few bytes at a time."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(7)


def numbers(output: bytes, opened: type[io.BytesIO] = io.BytesIO) -> list[int | tuple[str, int]]:
    """Numbers of the packets that are read; ("too large", number) of those that are not."""
    found = module._packets(opened(output))
    return [one.number if isinstance(one, Packet) else ("too large", one) for one in found]


@pytest.mark.parametrize("opened", [io.BytesIO, Drops], ids=["at once", "in drops"])
@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (b"[\n\n\n]\n", []),
        (b"", []),
        (printed(packet(1)), [1]),
        (printed(packet(1), packet(2), packet(3)), [1, 2, 3]),
        (printed(packet(1), packet(2))[:-40], [1]),
    ],
    ids=["no packet", "nothing", "one", "three", "broken off"],
)
def test_packets_of_the_output(output: bytes, expected: list[int], opened: type[io.BytesIO]) -> None:
    assert numbers(output, opened) == expected


def test_a_packet_that_is_too_large_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACKET_BYTES", 2000)
    large = packet(2, **{"kafka.message_value": "ab:" * 5000})
    assert numbers(printed(packet(1), large, packet(3)), Drops) == [1, ("too large", 2), 3]
    assert numbers(printed(packet(1), large), Drops) == [1, ("too large", 2)]


def test_deep_nesting_is_no_failure() -> None:
    deep = b"[\n  {\n" + b'"frame.number": "9", "a":{' + b'"a":{' * 100_000 + b"}" * 100_001 + b"\n  }\n]\n"
    assert numbers(deep) == [("too large", 9)]


def test_which_message_is_malformed() -> None:
    layers = [
        ("kafka", [("kafka.len", "10"), ("kafka.correlation_id", "1")]),
        ("_ws.malformed", "Malformed Packet"),
        ("kafka", [("kafka.len", "20"), ("kafka.correlation_id", "2")]),
    ]
    found = messages(Packet(1, 0, 0, ("10.0.0.1", 40000), ("10.0.0.2", 9092), layers))
    assert [(one.values["number"], one.malformed) for one in found] == [(1, True), (2, False)]


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [("1795173818.530020640", 1795173818530020640), ("1795173818.5", 1795173818500000000), ("7", 7_000_000_000),
     ("2026-11-20T11:23:38.530020640Z", 1795173818530020640)],
)  # fmt: skip
def test_times_of_all_versions(epoch: str, expected: int) -> None:
    assert module._ns(epoch) == expected


def test_a_missing_program_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(TsharkError, match=r"^tshark is not installed: apt-get install tshark .*"):
        find_tshark()


def test_the_version_is_known(tshark: str) -> None:
    found = find_tshark()
    assert found.program == tshark
    assert found.version[0] >= 3
