"""One Spark session for all tests of archives that need one; opening it takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session of two cores in this process."""
    from analyser.archive.java import find_java
    from analyser.archive.session import SessionSettings, open_session

    with open_session(SessionSettings(master="local[2]", app_name="wirewitness tests"), find_java()) as session:
        yield session
