"""One zstd frame under a limit that is exactly its content: the frame's end may come with the last step of input."""

from __future__ import annotations

import random

import pytest
import zstandard

from wirewitness.dissectors.core.decompression import CAREFUL_BYTES, LIMIT_REACHED, Decompressed, zstd_block


def frame(content: bytes, checksum: bool) -> bytes:
    """Return a frame that does not state its size, as klauspost/compress writes for MongoDB's Go driver."""
    return zstandard.ZstdCompressor(write_content_size=False, write_checksum=checksum).compress(content)


@pytest.mark.parametrize("checksum", [True, False])
def test_what_has_exactly_the_stated_size_is_all_of_it(checksum: bool) -> None:
    content = random.Random(7).randbytes(3 * CAREFUL_BYTES)
    for size in range(1, len(content)):
        part = content[:size]
        assert zstd_block(frame(part, checksum), size) == Decompressed(part), size


@pytest.mark.parametrize("checksum", [True, False])
def test_what_holds_more_is_cut_and_said(checksum: bool) -> None:
    content = random.Random(8).randbytes(3 * CAREFUL_BYTES)
    for size in range(2, len(content)):
        found = zstd_block(frame(content[:size], checksum), size - 1)
        assert found == Decompressed(content[: size - 1], LIMIT_REACHED, limited=True), size


def test_two_blocks_of_which_the_first_fills_the_room() -> None:
    content = random.Random(9).randbytes(300 * 1024)  # blocks hold 128 KiB at most
    for room in (128 * 1024, 256 * 1024):
        found = zstd_block(frame(content, True), room)
        assert found == Decompressed(content[:room], LIMIT_REACHED, limited=True)
