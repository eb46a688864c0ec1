"""Variants of incidents without a new run: the start cut away, one side only, some packets lost, two at once.

In: folders of incidents (capture.pcapng, or .pcapng.zst). Out: NAME.VARIANT folders with a capture and the truth, which
says what was done to it.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zstandard

from tests.lab.incidents import second_network
from tests.lab.incidents.judge import capture_of
from tests.lab.processes import run

LOST = 0.01
CLIENT_PORTS_FROM = 30_000  # servers of the lab listen below
MOST_SELECTIONS = 500  # editcap takes 512


@contextmanager
def plain_capture(folder: Path) -> Iterator[Path]:
    """Yield an incident's capture, unpacked for the time of the block where it is compressed."""
    capture = capture_of(folder)
    if capture is None:
        raise FileNotFoundError(f"{folder} has no capture")
    if capture.suffix != ".zst":
        yield capture
        return
    with tempfile.NamedTemporaryFile(suffix=".pcapng") as unpacked, capture.open("rb") as packed:
        zstandard.ZstdDecompressor().copy_stream(packed, unpacked)
        unpacked.flush()
        yield Path(unpacked.name)


def packets(capture: Path) -> int:
    """Return how many packets a capture has."""
    return int(run(["capinfos", "-c", "-M", "-T", "-r", str(capture)]).split("\t")[-1])


def start_cut(source: Path, target: Path, _: random.Random) -> None:
    """The first third is missing."""
    run(["editcap", "-r", str(source), str(target), f"{packets(source) // 3}-{2**31}"])


def one_sided(source: Path, target: Path, rng: random.Random) -> None:
    """Only what clients send, or only what they get, was captured."""
    side = rng.choice(("src", "dst"))
    run(
        ["tshark", "-r", str(source), "-Y", f"tcp.{side}port >= {CLIENT_PORTS_FROM}", "-F", "pcapng", "-w", str(target)]
    )


def lossy(source: Path, target: Path, rng: random.Random) -> None:
    """The capture host lost a hundredth of the packets."""
    count = packets(source)
    gone = sorted(rng.sample(range(1, count + 1), min(int(count * LOST), MOST_SELECTIONS)))
    run(["editcap", str(source), str(target), *map(str, gone)])


VARIANTS: dict[str, Callable[[Path, Path, random.Random], None]] = {
    "start-cut": start_cut,
    "one-sided": one_sided,
    "lossy": lossy,
}


def write(folder: Path, truth: dict[str, Any], variant: str) -> None:
    """Write the truth of a variant."""
    (folder / "truth.json").write_text(json.dumps({**truth, "name": folder.name, "variant": variant}, indent=1) + "\n")


def make(source: Path, variant: str, output: Path, seed: int) -> None:
    """Make one variant of the incident in SOURCE."""
    folder = output / f"{source.name}.{variant}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rng = random.Random(f"{seed} {folder.name}")
    with plain_capture(source) as capture:
        VARIANTS[variant](capture, folder / "capture.pcapng", rng)
    write(folder, json.loads((source / "truth.json").read_text()), variant)


def make_two(first: Path, second: Path, output: Path) -> None:
    """Put two incidents into one capture, the second in a network and cluster of its own; a truth for each."""
    name = f"{first.name}+{second.name}.two"
    truths = [json.loads((one / "truth.json").read_text()) for one in (first, second)]
    truths[1] = json.loads(second_network.moved(json.dumps(truths[1]).encode()))
    folder = output / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with plain_capture(first) as one, plain_capture(second) as other:
        second_network.merge(one, other, folder / "capture.pcapng")
    write(folder, {**truths[0], "second": truths[1]}, "two")


def main(words: Sequence[str]) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.incidents vary", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="folders of incidents, or one that holds such")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=(*VARIANTS, "two"))
    options = parser.parse_args(words)
    found = sorted({truth.parent for folder in options.folders for truth in folder.rglob("truth.json")})
    whole = [one for one in found if "variant" not in json.loads((one / "truth.json").read_text())]
    for source in whole:
        for variant in VARIANTS:
            if options.only in (None, variant):
                make(source, variant, options.output, options.seed)
    if options.only in (None, "two"):
        rng = random.Random(options.seed)
        rng.shuffle(whole)
        for first, second in zip(whole[::2], whole[1::2], strict=False):
            make_two(first, second, options.output)
    return 0
