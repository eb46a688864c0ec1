"""Secrets in columns of finished tables, whether their texts are codes or not."""

from __future__ import annotations

import pyarrow as pa
import pytest

from wirewitness.analyser.analysis.masking import masked_column
from wirewitness.analyser.tables.tables import TABLES

TEXTS = ["refused: password=hunter2 is wrong", None, "not authorised"] * 3


def test_codes_are_masked_as_texts_are() -> None:
    column = TABLES["messages"].column("summary")
    found = masked_column(column, pa.array(TEXTS))
    assert "hunter2" not in str(found.to_pylist())
    assert found.to_pylist()[1:3] == TEXTS[1:3]
    coded = masked_column(column, pa.array(TEXTS).dictionary_encode())
    assert (pa.types.is_dictionary(coded.type), coded.to_pylist()) == (True, found.to_pylist())


@pytest.mark.parametrize("others", [0, 50, 5_000], ids=["few", "repeated", "many"])
@pytest.mark.parametrize("repeats", [1, 40])
def test_one_secret_is_found_among_however_many_texts(others: int, repeats: int) -> None:
    texts = [*(f"topic-{number}" for number in range(others)), *TEXTS] * repeats
    found = masked_column(TABLES["messages"].column("summary"), pa.array(texts)).to_pylist()
    assert [text for text in found if text in TEXTS] == [text for text in texts if text != TEXTS[0] and text in TEXTS]
    assert sum("***" in (text or "") for text in found) == 3 * repeats
    assert found[:others] == texts[:others]


def test_a_column_without_texts_stays_as_it_is() -> None:
    empty = pa.nulls(3, pa.string())
    assert masked_column(TABLES["messages"].column("summary"), empty) is empty
