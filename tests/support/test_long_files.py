"""The files that `make test` runs a part of."""

from __future__ import annotations

from tests.support.long_files import FIRST_ONLY, NONE, ONE_OF, TESTS


def test_every_one_is_there() -> None:
    assert [name for name in sorted(FIRST_ONLY | NONE | ONE_OF.keys()) if not (TESTS / name).is_file()] == []
    assert not FIRST_ONLY & NONE
    assert not (FIRST_ONLY | NONE) & ONE_OF.keys()
    assert min(ONE_OF.values()) > 1
