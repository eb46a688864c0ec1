"""The files that `make test` runs a part of."""

from __future__ import annotations

from tests.support.long_files import CASES, FIRST_ONLY, NONE, ONE_OF, TESTS


def test_every_one_is_there() -> None:
    assert [name for name in sorted(FIRST_ONLY | NONE | ONE_OF.keys()) if not (TESTS / name).is_file()] == []
    assert not FIRST_ONLY & NONE
    assert not (FIRST_ONLY | NONE) & ONE_OF.keys()
    assert min(ONE_OF.values()) > 1


def test_every_test_is_there() -> None:
    for test in CASES:
        name, _, function = test.partition("::")
        assert f"def {function.rpartition('::')[2]}(" in (TESTS / name).read_text(), test
