"""What tests of the dashboard share: a server of their own, a browser, somebody before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.support.browser import Person


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a dashboard that offers the samples."""
    from tests.support.browser import dashboard

    with dashboard(tmp_path_factory.mktemp("dashboard")) as served:
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For several persons."""
    from tests.support.browser import chromium

    with chromium() as opened:
        yield opened


@pytest.fixture
def somebody(browser: Browser, address: str) -> Iterator[Person]:
    """Whose browser asked no other machine for anything, and had no error."""
    from tests.support.browser import person

    with person(browser, address) as one:
        yield one
        assert one.strangers == []
        assert one.errors == []
