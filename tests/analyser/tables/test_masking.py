"""Secrets in columns of finished tables, whether their texts are codes or not."""

from __future__ import annotations

import pyarrow as pa

from analyser.registry.tables import TABLES
from analyser.tables.masking import masked_column

TEXTS = ["refused: password=hunter2 is wrong", None, "not authorised"] * 3


def test_codes_are_masked_as_texts_are() -> None:
    column = TABLES["messages"].column("summary")
    found = masked_column(column, pa.array(TEXTS))
    assert "hunter2" not in str(found.to_pylist())
    assert found.to_pylist()[1:3] == TEXTS[1:3]
    coded = masked_column(column, pa.array(TEXTS).dictionary_encode())
    assert (pa.types.is_dictionary(coded.type), coded.to_pylist()) == (True, found.to_pylist())
