"""Every case is in one share; what is no case is in all."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.share import VARIABLE, share

pytest_plugins = ["pytester"]

FILE = """
import pytest

@pytest.mark.exhaustive
@pytest.mark.parametrize("number", range(40))
def test_case(number):
    pass

@pytest.mark.cases
@pytest.mark.parametrize("number", range(40))
def test_case_of_a_server(number):
    pass

def test_other():
    pass
"""


class Seen:
    """Remembers what a run collected."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Called when it is decided what runs."""
        self.names = [item.name for item in session.items]


def collected(pytester: pytest.Pytester) -> list[str]:
    seen = Seen()
    assert pytester.inline_run("--collect-only", "-q", plugins=[seen]).ret == 0
    return seen.names


def test_every_case_is_in_one_share(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makepyfile(test_cases=FILE)
    pytester.makeconftest(
        "import pytest\n"
        "from tests.support.share import keep_share\n"
        "def pytest_configure(config):\n"
        "    for mark in ('exhaustive', 'cases'):\n"
        "        config.addinivalue_line('markers', mark)\n"
        "def pytest_collection_modifyitems(config, items):\n"
        "    keep_share(config, items)\n"
    )
    monkeypatch.delenv(VARIABLE, raising=False)
    everything = collected(pytester)
    assert len(everything) == 81
    shares = []
    for number in (1, 2, 3):
        monkeypatch.setenv(VARIABLE, f"{number}/3")
        shares.append(collected(pytester))
    assert all(10 < len(names) < 50 for names in shares)
    counted = Counter(name for names in shares for name in names)
    assert counted.pop("test_other") == 3
    assert counted == dict.fromkeys([name for name in everything if name != "test_other"], 1)


@pytest.mark.parametrize("text", ["0/3", "4/3", "2", "a/3", "2/", "/"])
def test_what_is_no_share_is_an_error(text: str) -> None:
    with pytest.raises(pytest.UsageError, match="as in 2/3"):
        share(text)
