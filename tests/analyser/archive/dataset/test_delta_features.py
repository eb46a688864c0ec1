"""A table in which somebody switched on a feature of Delta that changes what its files mean."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import SAMPLES
from tests.support.datasets import make_dataset
from wirewitness.analyser.archive.dataset.delta import LOG, DeltaFolder
from wirewitness.analyser.archive.dataset.place import DatasetError

TABLE = "exchanges"


@pytest.fixture
def folder(tmp_path: Path) -> DeltaFolder:
    make_dataset(tmp_path / "set", [SAMPLES / "mqtt_takeover_loop.pcapng"])
    return DeltaFolder(tmp_path / "set", TABLE)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (
            {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"],
             "writerFeatures": ["deletionVectors"]},
            "deletionVectors",
        ),
        ({"minReaderVersion": 2, "minWriterVersion": 5}, "reader version 2"),
    ],
    ids=["deletion vectors", "column mapping"],
)  # fmt: skip
def test_such_a_version_is_refused_and_the_one_before_is_read(
    folder: DeltaFolder, asked: dict[str, object], told: str
) -> None:
    before = folder.latest()
    assert before is not None
    parts = folder.parts(before)
    assert parts
    (folder.path / LOG / f"{before + 1:020}.json").write_text(json.dumps({"protocol": asked}) + "\n")
    with pytest.raises(DatasetError, match=told):
        folder.parts(before + 1)
    with pytest.raises(DatasetError, match=told):
        folder.commit(parts, [], "000002")
    assert folder.parts(before) == parts
