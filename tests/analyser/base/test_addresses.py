"""Addresses with ports have one form."""

from __future__ import annotations

import pytest

from wirewitness.analyser.base.addresses import client_endpoint_text, endpoint_text, server_of, server_text, who_is


@pytest.mark.parametrize(
    ("host", "port", "expected"),
    [
        ("10.0.0.9", 9092, "10.0.0.9:9092"),
        ("fd00::9", 9092, "[fd00::9]:9092"),
        ("broker-1.internal", 9092, "broker-1.internal:9092"),
        ("a\x1b[2Jb", 1, "a\\x1b[2Jb:1"),
        ("fd00::9", None, "[fd00::9]"),
        (None, 9092, "(unknown address):9092"),
        (None, None, "(unknown address)"),
    ],
)
def test_an_endpoint(host: str | None, port: int | None, expected: str) -> None:
    assert endpoint_text(host, port) == expected


def test_both_ends_of_a_row() -> None:
    row = {"client_address": "fd00::1", "client_port": 40_001, "server_address": "10.0.0.9", "server_port": 9092}
    assert client_endpoint_text(row) == "[fd00::1]:40001"
    assert server_text(row) == server_of(row) == "10.0.0.9:9092"
    assert server_of(row | {"server_address": None}) is None


@pytest.mark.parametrize(
    ("name", "place", "more", "expected"),
    [
        ("shop-1", "10.0.0.3", {}, "client shop-1 at 10.0.0.3"),
        (None, "10.0.0.3:40001", {}, "the client at 10.0.0.3:40001"),
        ("billing", None, {"kind": "application", "detail": "PyMongo 4.20.0"},
         "application billing at (unknown address) (PyMongo 4.20.0)"),
        ("a\x1bb", "10.0.0.3", {}, "client a\\x1bb at 10.0.0.3"),
    ],
)  # fmt: skip
def test_who_a_client_is(name: str | None, place: str | None, more: dict[str, str], expected: str) -> None:
    assert who_is(name, place, **more) == expected
