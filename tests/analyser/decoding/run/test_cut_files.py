"""A capture cut into many files tells what it tells in one, but for the names of packets and remarks on the files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.compute as pc
import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.support.packets import Captured
from tests.support.rotated import rotated
from tests.support.shares import long_cases
from tests.support.wire import duplicated, lossy, packets_of, reordered

DAMAGES: dict[str, Callable[[Sequence[Captured]], list[Captured]]] = {
    "whole": list,
    "lossy": lambda packets: lossy(packets, 4, 0.2),
    "lost, doubled and displaced": lambda packets: duplicated(reordered(lossy(packets, 7, 0.01), 8), 9),
}
ALL = sorted(path.stem for path in SAMPLES.glob("*.pcapng"))
PACKETS_AT_LEAST = 8
# Columns that name packets or files, and those of findings that do so among other things.
_NAMING = {"file", "packet", "evidence", "finding_id", "numbers"}


def told(captures: Sequence[Path]) -> dict[str, Counter[str]]:
    """All rows of all tables without the names of packets."""
    found = {}
    with wirewitness.read(captures) as analysis:
        for table in analysis.tables():
            rows = analysis.arrow(table)
            if table == "expert_infos":
                rows = rows.filter(pc.field("group") != "capture")
            if table == "findings":
                rows = rows.filter(pc.field("code") != "CAP108")
            naming = [name for name in rows.schema.names if _NAMING & {name, *name.split("_")}]
            found[table] = Counter(map(repr, rows.drop_columns(naming).to_pylist()))
    del found["captures"]
    return found


def compare(name: str, damage: str, files: int, folder: Path) -> None:
    packets = DAMAGES[damage](packets_of(SAMPLES / f"{name}.pcapng"))
    # Files come in the order of their first packets: shorter ones than packets are displaced would change places.
    files = min(files, len(packets) // PACKETS_AT_LEAST)
    merged, cut = (told(rotated(packets, folder / str(count), count)) for count in (1, files))
    assert {table for table in merged if merged[table] != cut[table]} == set()
    assert merged["messages"]


@pytest.mark.parametrize(
    ("name", "damage"), [("kafka_sasl", "whole"), ("mqtt_qos2_stuck", "lost, doubled and displaced")]
)
def test_seven_files_tell_what_one_tells(name: str, damage: str, tmp_path: Path) -> None:
    compare(name, damage, 7, tmp_path)


@pytest.mark.lab
@pytest.mark.parametrize("name", long_cases(ALL))
def test_up_to_fifty_files_tell_what_one_tells(name: str, tmp_path: Path) -> None:
    for damage in DAMAGES if (SAMPLES / f"{name}.pcapng").stat().st_size < 200_000 else ("whole",):
        compare(name, damage, 50, tmp_path / damage)
