"""Folders of capture files, as a ring of files leaves them: some damaged, some something else.

In: a byte that chooses the command, then names and bytes of files. Out: AssertionError where the command ends with 70
or shows a trace.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from random import Random

from tests.fuzz import commands, layers
from tests.fuzz.checks import folder
from tests.fuzz.mutate import broken
from tests.fuzz.pieces import SAMPLES

_NAMES = (
    "a.pcap",
    "b.pcapng",
    "c.pcap.gz",
    "d.zst",
    "e.lz4",
    "\r\u202egnp.pcap",
    "-x",
    "a b\n.pcap0",
    "ring_00001.pcapng",
    "x.csv",
)


def check(data: bytes) -> None:
    """A folder of capture files, cut out of DATA: a byte for the command, then a name, a size and the bytes of each."""
    place = folder() / "ring"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name, held in files(data):
        (place / name).write_bytes(held)
    match (data[0] if data else 0) % 5:
        case 0:
            commands.run_cli("analyse", str(place))
        case 1:
            commands.run_cli("analyse", str(place), "--format", "json", "--from", "2020-01-01")
        case 2:
            commands.run_cli("table", "captures", str(place))
        case 3:
            commands.run_cli("table", "messages", str(place), "--format", "csv")
        case _:
            commands.run_cli("show", str(place), "--packet", "2", "--no-index")


def files(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of the files."""
    at = 1
    while at + 4 <= len(data):
        size = int.from_bytes(data[at + 1 : at + 4], "big")
        yield _NAMES[data[at] % len(_NAMES)], data[at + 4 : at + 4 + size]
        at += 4 + size


def made(dice: Random) -> bytes:
    """Captures that follow each other, some damaged, some something else."""
    parts = [bytes([dice.randrange(5)])]
    for _ in range(dice.choice([1, 2, 2, 3])):
        match dice.randrange(4):
            case 0:
                held = layers.capture_file(dice)
            case 1:
                sample = dice.choice(sorted(SAMPLES.glob("*.pcapng"))).read_bytes()
                held = broken(sample[: dice.choice([4_000, 16_000])], dice)
            case 2:
                held = layers.packed(layers.capture_file(dice), dice)
            case _:
                held = (SAMPLES / "mongo_show_databases.pcapng").read_bytes()[: dice.choice([8_000, 30_000])]
        parts.append(bytes([dice.randrange(len(_NAMES))]) + len(held).to_bytes(3, "big") + held)
    return b"".join(parts)


def change(data: bytes, dice: Random) -> bytes:
    """Made anew, or broken."""
    return made(dice) if dice.random() < 0.6 else data[:1] + broken(data[1:], dice)
