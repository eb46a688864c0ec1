"""Evidence keeps what its capture told of processes, and what people wrote on packets."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.app.program import run
from tests.conftest import SAMPLES
from tests.support.owned import Whose, comment, darwin, darwin_block, ptcpdump, with_options

SAMPLE = SAMPLES / "mqtt_takeover_loop.pcapng"
SECRET = "hunter2"
COLUMNS = ("process", "pid", "user", "container", "pod", "namespace")
CONTAINER = ("payments", "8f14e45f" * 8)


def everywhere(source: str, port: int, *_: object) -> bytes:
    return ptcpdump(4711, "/usr/bin/java", f"-p {SECRET}", user=1000, container=CONTAINER, pod=("pay-7d4f", "shop"))


def once() -> Whose:
    """Only on the third packet of each sender."""
    counts: Counter[tuple[str, int]] = Counter()

    def told(source: str, port: int, *rest: object) -> bytes:
        counts[source, port] += 1
        return everywhere(source, port) if counts[source, port] == 3 else b""

    return told


def people() -> Whose:
    counts: Counter[tuple[str, int]] = Counter()

    def told(source: str, port: int, *rest: object) -> bytes:
        counts[source, port] += 1
        return comment(f"look here, {SECRET}") if counts[source, port] == 1 else b""

    return told


def flows(path: Path) -> dict[str, dict[str, Any]]:
    done = run("table", "flows", path, "--format", "jsonl", "--quiet")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    names = [f"{side}_{name}" for side in ("client", "server") for name in COLUMNS]
    return {row["flow_id"]: {name: row[name] for name in names} for row in rows}


def extracted(tmp_path: Path, capture: bytes, *words: str) -> tuple[Path, Path]:
    """A capture, and the evidence of its gravest finding."""
    whole, part = tmp_path / "whole.pcapng", tmp_path / "part.pcapng"
    whole.write_bytes(capture)
    found = [json.loads(line) for line in run("findings", whole, "--format", "jsonl", "--quiet").stdout.splitlines()]
    done = run("extract", whole, "--finding", found[0]["finding_id"], "-o", part, *words)
    assert done.returncode == 0, done.stderr
    return whole, part


def with_blocks(capture: bytes) -> bytes:
    """The same with process blocks of Apple's tcpdump in front of the packets."""
    told = with_options(capture, lambda *_: darwin(0))
    at = told.index(b"\6\0\0\0", 28)  # the first packet block
    while int.from_bytes(told[at + 4 : at + 8], "little") % 4:
        at = told.index(b"\6\0\0\0", at + 1)
    return told[:at] + darwin_block(4711, "java") + told[at:]


@pytest.mark.parametrize("words", [(), ("--redact",)], ids=["raw", "redacted"])
@pytest.mark.parametrize("kind", ["everywhere", "once", "blocks"])
def test_owners_stay_with_their_connections(tmp_path: Path, kind: str, words: tuple[str, ...]) -> None:
    sample = SAMPLE.read_bytes()
    capture = with_blocks(sample) if kind == "blocks" else with_options(
        sample, everywhere if kind == "everywhere" else once()
    )  # fmt: skip
    whole, part = extracted(tmp_path, capture, *words)
    before, after = flows(whole), flows(part)
    kept = [flow for flow in after if flow in before]
    assert kept
    assert {flow: after[flow] for flow in kept} == {flow: before[flow] for flow in kept}
    assert any(after[flow]["client_pid"] == 4711 for flow in kept)
    assert SECRET.encode() not in part.read_bytes()


def test_what_people_wrote_stays_unless_it_might_tell_too_much(tmp_path: Path) -> None:
    capture = with_options(SAMPLE.read_bytes(), people())
    _, raw = extracted(tmp_path, capture)
    assert f"look here, {SECRET}".encode() in raw.read_bytes()
    _, redacted = extracted(tmp_path, capture, "--redact")
    assert SECRET.encode() not in redacted.read_bytes()
