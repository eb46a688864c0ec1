"""The files that `make test` runs a part of."""

from __future__ import annotations

from tests.support.long_files import FIRST_ONLY, NONE, TESTS


def test_every_one_is_there() -> None:
    assert [name for name in sorted(FIRST_ONLY | NONE) if not (TESTS / name).is_file()] == []
    assert not FIRST_ONLY & NONE
