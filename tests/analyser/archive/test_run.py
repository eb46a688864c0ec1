"""A dataset holds what the offline command finds in the same captures, however they come: cut into files, in ranges of
files, all at once or in several runs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import wirewitness
from tests.conftest import SAMPLES, require_program
from tests.support.archived import differences
from tests.support.packets import Captured, pcap
from tests.support.rotated import rotated
from tests.support.shares import every, long_cases, pairs
from tests.support.tls_twin import TLS_13, Sides, twin
from tests.support.two_points import at_two_points
from tests.support.wire import duplicated, lossy, packets_of, reordered, resegmented
from wirewitness.analyser.archive.dataset.dataset import Dataset
from wirewitness.analyser.archive.run import ArchiveOptions, archive
from wirewitness.analyser.base.options import ReadOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = sorted(path.stem for path in SAMPLES.glob("*.pcapng"))


@cache
def sample(name: str) -> tuple[Captured, ...]:
    return tuple(packets_of(SAMPLES / f"{name}.pcapng"))


class Way(NamedTuple):
    """How a capture comes: in how many files and runs, and in which ranges of bytes."""

    files: int = 1
    runs: int = 1
    range_bytes: int = 1 << 40
    packed: bool = False


WAYS = {
    "one file": Way(),
    "byte ranges": Way(range_bytes=50_000),
    "two files": Way(2),
    "seven files of ranges": Way(7, range_bytes=30_000),
    "fifty files": Way(50),
    "gzip": Way(3, packed=True),
    "five runs": Way(5, 5),
    "fifty files in five runs": Way(50, 5),
    "gzip in two runs": Way(4, 2, packed=True),
}


def archived(spark: SparkSession, captures: Sequence[Path], root: Path, way: Way) -> None:
    """Make the dataset, run by run."""
    options = ArchiveOptions(shards=3, range_bytes=way.range_bytes)
    for run in range(way.runs):
        known = captures[: len(captures) * (run + 1) // way.runs]
        summary = archive(sorted(known), root, spark, options)
        assert (summary.aside, summary.failures) == ([], [])
    assert len(Dataset.open(root).manifest.runs) == way.runs


def compare(spark: SparkSession, packets: Sequence[Captured], folder: Path, way: Way) -> list[str]:
    captures = rotated(packets, folder / "captures", way.files, packed=way.packed)
    archived(spark, captures, folder / "dataset", way)
    with wirewitness.read(folder / "dataset", tables=["exchanges", "latency_minutes"]) as kept:
        counts = kept.sql("SELECT (SELECT count(*) FROM exchanges), (SELECT sum(exchanges) FROM latency_minutes)")
        assert len({*counts.to_pylist()[0].values()}) == 1
    return differences(folder / "dataset", captures)


TWO_WAYS = [("mongo_healthy", "gzip in two runs"), ("kafka_sasl", "seven files of ranges")]


@pytest.mark.parametrize(("name", "way"), pairs(TWO_WAYS, every(2, TWO_WAYS)))
def test_a_dataset_is_what_the_offline_command_finds(spark: SparkSession, name: str, way: str, tmp_path: Path) -> None:
    assert compare(spark, sample(name), tmp_path, WAYS[way]) == []


@pytest.mark.lab
@pytest.mark.cases
@pytest.mark.parametrize(("number", "name"), list(enumerate(ALL)), ids=ALL)
def test_every_sample_in_two_ways(spark: SparkSession, number: int, name: str, tmp_path: Path) -> None:
    """Each sample in two of the ways, neighbours in others; one of them is incremental."""
    once, often = list(WAYS)[: len(WAYS) - 3], list(WAYS)[len(WAYS) - 3 :]
    for way in (once[number % len(once)], often[number % len(often)]):
        assert compare(spark, sample(name), tmp_path / way.replace(" ", "-"), WAYS[way]) == [], way


DAMAGES: dict[str, Callable[[Sequence[Captured]], list[Captured]]] = {
    "1 % lost": lambda packets: lossy(packets, 1, 0.01),
    "20 % lost": lambda packets: lossy(packets, 4, 0.2),
    "5 % lost of small segments": lambda packets: lossy(resegmented(packets, 90), 6, 0.05),
    "lost, doubled and displaced": lambda packets: duplicated(reordered(lossy(packets, 7, 0.01), 8), 9),
    "seen at a second point": lambda packets: at_two_points(packets, lossy(packets, 3, 0.02)),
    "a second point that comes later": lambda packets: at_two_points(packets, packets[len(packets) // 2 :]),
    "cut at 200": lambda packets: [Captured(one.ts_ns, one.data[:200], one.wire) for one in packets],
}


DAMAGED = [
    pytest.param(*one) for one in product(["kafka_fenced_commit", "mongo_shapes_and_errors", "mqtt_faults"], DAMAGES)
]
ALWAYS = (
    pytest.param("kafka_fenced_commit", "lost, doubled and displaced"),
    pytest.param("mqtt_faults", "5 % lost of small segments"),
)


@pytest.mark.lab
@pytest.mark.parametrize(("name", "damage"), long_cases(DAMAGED, *ALWAYS))
def test_damaged_samples(spark: SparkSession, name: str, damage: str, tmp_path: Path) -> None:
    packets = DAMAGES[damage](sample(name))
    assert compare(spark, packets, tmp_path, WAYS["fifty files in five runs"]) == []


def encrypted(folder: Path, name: str, *, inside: bool) -> tuple[Path, Path, bytes]:
    """A sample inside TLS, its key log, and what that has; inside: the capture brings the secrets along."""
    sides = Sides(TLS_13)
    packets, _ = twin(sample(name), sides)
    plain, keylog, capture = folder / "plain.pcap", folder / "keys.log", folder / "captures" / "tls.pcapng"
    capture.parent.mkdir()
    plain.write_bytes(pcap(packets, nanoseconds=True))
    keylog.write_bytes(sides.keylog)
    words = ["--inject-secrets", f"tls,{keylog}"] if inside else ["-F", "pcapng"]
    subprocess.run([require_program("editcap"), *words, plain, capture], check=True)
    return capture, keylog, sides.keylog


@pytest.mark.parametrize("inside", [True, False])
def test_keys_serve_all_ranges_of_a_capture(spark: SparkSession, inside: bool, tmp_path: Path) -> None:
    """From a key log, or from the capture's head: what lies ranges behind it is decrypted; nothing keeps a secret."""
    capture, keylog, secrets = encrypted(tmp_path, "kafka_fenced_commit", inside=inside)
    read = ReadOptions() if inside else ReadOptions(keylogs=(str(keylog),))
    root = tmp_path / "dataset"
    summary = archive([capture], root, spark, ArchiveOptions(shards=3, range_bytes=40_000, read=read))
    assert (summary.aside, summary.failures) == ([], [])
    assert differences(root, [capture], read) == []
    with wirewitness.read(root, tables=["flows"]) as kept:
        assert set(kept.table("flows").tls_decryption) == {"decrypted"}
    written = b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())
    for line in (line for line in secrets.splitlines() if not line.startswith(b"#")):
        secret = line.split()[2]
        assert secret not in written
        assert bytes.fromhex(secret.decode()) not in written
