"""Texts as codes: the same texts, wherever rows with codes and rows without come together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.shares import examples
from wirewitness.analyser.decoding.rows.chunk_file import ChunkWriter, read_chunk
from wirewitness.analyser.decoding.rows.text_codes import coded, in_text, together
from wirewitness.analyser.tables.coded import plain

VALUES = st.lists(st.one_of(st.none(), st.sampled_from(["", "a", "b", "küche"])), min_size=1, max_size=6)
SCHEMA = pa.schema([("word", pa.string()), ("count", pa.int64())])


@examples(100)
@given(VALUES, st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_a_code_is_its_text(values: list[str | None], codes: list[int]) -> None:
    codes = [code % len(values) for code in codes]
    column = coded(np.array(codes, np.uint8), values, len(codes))
    assert column.to_pylist() == [values[code] for code in codes]
    if pa.types.is_dictionary(column.type):  # what a writer of Parquet and who looks for null in the codes rely on
        texts = column.dictionary.to_pylist()
        assert None not in texts
        assert len({*texts}) == len(texts)
    else:
        assert 2 * len(values) > len(codes)


def test_texts_that_hardly_repeat_have_no_codes() -> None:
    assert coded(np.arange(9), [str(n) for n in range(9)], 9).type == pa.string()


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises((pa.ArrowException, TypeError)):
        coded(np.zeros(9, np.int32), [7], 9)  # type: ignore[list-item]


@examples(100)
@given(st.lists(st.tuples(st.lists(st.sampled_from(["a", "b", None]), max_size=9), st.booleans()), min_size=1))
def test_batches_with_and_without_codes_come_together(parts: list[tuple[list[str | None], bool]]) -> None:
    batches = []
    for words, with_codes in parts:
        column = pa.array(words, pa.string())
        column = column.dictionary_encode() if with_codes else column
        batches.append(pa.RecordBatch.from_arrays([column, pa.array(range(len(words)), pa.int64())], SCHEMA.names))
    joined = together(batches, SCHEMA)
    assert joined.column("word").to_pylist() == [word for words, _ in parts for word in words]
    assert plain(joined, SCHEMA).schema == SCHEMA
    assert in_text(joined.column("word")).to_pylist() == joined.column("word").to_pylist()


def test_chunks_of_a_file_are_read_by_themselves(tmp_path: Path) -> None:
    chunks = [
        pa.RecordBatch.from_arrays([pa.array(words).dictionary_encode() if codes else pa.array(words)], ["word"])
        for words, codes in ((["a", "b", "a"], True), (["c"], False), (["d", "d"], True))
    ]
    writer = ChunkWriter(tmp_path / "rows", "lz4")
    for chunk in chunks:
        writer.write(chunk)
    writer.close()
    with pa.OSFile(str(tmp_path / "rows"), "rb") as file:
        for number in (2, 0, 1):
            found = read_chunk(file, writer.places[number])
            assert found.schema == chunks[number].schema
            assert found.to_pylist() == chunks[number].to_pylist()
