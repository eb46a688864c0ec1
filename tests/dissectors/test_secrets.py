"""Secrets in text are found by name and form; names, numbers and ordinary sentences stay, and the cost is linear."""

from __future__ import annotations

import pytest

from tests.support.secret_corpus import CORPUS, ORDINARY, Planted
from tests.support.timing import follows_size, seconds, takes_less_than
from wirewitness.dissectors.core.secrets import is_secret_name, looks_opaque, masked, masked_user, may_hold_secrets


@pytest.mark.parametrize("planted", CORPUS, ids=lambda one: one.text[:50])
def test_secrets_of_real_systems_are_masked(planted: Planted) -> None:
    shown = masked(planted.text)
    assert planted.secret not in shown
    assert "***" in shown
    assert masked(shown) == shown
    assert may_hold_secrets(planted.text.encode())


@pytest.mark.parametrize("text", ORDINARY)
def test_what_is_no_secret_stays(text: str) -> None:
    assert masked(text) == text


def test_the_rest_of_the_text_stays() -> None:
    assert masked("mongodb://app:x1@db1:27017/shop") == "mongodb://app:***@db1:27017/shop"
    assert (
        masked("jdbc:postgresql://h/d?user=a&password=x1&ssl=true")
        == "jdbc:postgresql://h/d?user=a&password=***&ssl=true"
    )


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("ssl.keystore.password", True), ("basic.auth.user.info", True), ("auth.header", True),
        ("sasl.jaas.config", True),
        ("my.SECRET.thing", True), ("schema.registry.basic.auth.user.info", True), ("Authorization", True),
        ("x-api-key", True), ("apiKey", True), ("ssl.keystore.type", False), ("retention.ms", False),
        ("cleanup.policy", False), ("author", False), ("keyboard.layout", False),
    ],
)  # fmt: skip
def test_names_of_secrets(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret


@pytest.mark.parametrize("name", ["A1b2C3d4E5f6G7h8I9j0K", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJwYXVsYSJ9.c2lnbmF0dXJl"])
def test_user_names_that_are_tokens(name: str) -> None:
    assert masked_user(name) == "***"


@pytest.mark.parametrize(
    "name",
    ["ingest", "PaymentsService2024ProdEU01", "550e8400-e29b-41d4-a716-446655440000", "device-00001-eu-west",
     "hub.azure-devices.net/dev1/?api-version=2021-04-12", "CN=client.example.com,O=Example"],
)  # fmt: skip
def test_user_names_that_are_names(name: str) -> None:
    assert not looks_opaque(name)
    assert masked_user(name) == name


def test_passwords_in_urls_end_at_the_last_sign() -> None:
    """As far as a password may go, and no further."""
    assert masked("a://u:p@q:r@h b://u:s@h") == "a://u:***@h b://u:***@h"
    assert masked("a://h:9092/x@y") == "a://h:9092/x@y"
    assert masked("a://u:@h, b://v://w:p@h") == "a://u:@h, b://v:***@h"
    far = "p" * 2048
    assert masked(f"a://u:{far}@h") == "a://u:***@h"
    assert masked(f"a://u:{far}p@h") == f"a://u:{far}p@h"
    assert masked(f"a://u:{far[:2044]}://w:{far}@h") == f"a://u:{far[:2044]}://w:***@h"


PIECES = ["://:", "://a:b", "://a:b@", "password", "password=", "token: ", "basic ", "eyJ", "eyJaaaaaa.", "AKIA",
          "invalid value ", "-----BEGIN PRIVATE KEY-----", "passwordpassword-", "secret.", "auth.header=", "key",
          '"password","']  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_twice_the_text_costs_no_more_than_twice(piece: str) -> None:
    def cost(size: int) -> float:
        text = (piece * (size // len(piece) + 1))[:size]
        return seconds(lambda: masked(text))

    assert takes_less_than(10, lambda: masked((piece * 200_000)[:200_000]))
    assert not follows_size(cost, 100_000, 400_000, 8, 0.1)


@pytest.mark.parametrize("piece", ["://:", "://a:"])
def test_what_nearly_is_a_secret_costs_little_more_than_what_is(piece: str) -> None:
    """These took ten times as long: nothing is read again from every place where a secret may begin."""
    nearly, secret = piece * (100_000 // len(piece)), "password=a " * 9_000
    least = min(seconds(lambda: masked(secret)) for _ in range(5))
    assert takes_less_than(4 * least + 0.05, lambda: masked(nearly))
    assert takes_less_than(4 * least + 0.05, lambda: masked(f"{nearly} @"))
