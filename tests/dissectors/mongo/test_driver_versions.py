"""Which servers a driver still takes."""

from __future__ import annotations

import pytest

from wirewitness.dissectors.mongo.driver_versions import oldest_wire_version, server_release


@pytest.mark.parametrize(
    ("driver", "version", "oldest"),
    [
        ("PyMongo", "3.12.0", 2), ("PyMongo", "4.6.1", 6), ("PyMongo|c", "4.13.0", 7), ("PyMongo|async", "4.20.0", 9),
        ("nodejs|Mongoose", "6.20.0|8.1", 6), ("nodejs", "7.8.0", 8), ("mongo-go-driver", "v2.10.0", 8),
        ("mongoc", "1.2.3", None), ("PyMongo", None, None), (None, "4.0", None), ("nodejs", "3.6.0", None),
    ],
)  # fmt: skip
def test_oldest_wire_version(driver: str | None, version: str | None, oldest: int | None) -> None:
    assert oldest_wire_version(driver, version) == oldest


@pytest.mark.parametrize(("wire", "release"), [(0, "2.4"), (5, "3.4"), (9, "4.4"), (12, "4.4"), (99, "8.0")])
def test_server_release(wire: int, release: str) -> None:
    assert server_release(wire) == release
