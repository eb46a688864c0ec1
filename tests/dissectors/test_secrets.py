"""Secrets in text are found by name and form; names, numbers and ordinary sentences stay, and the cost is linear."""

from __future__ import annotations

import random
import re

import pytest

from tests.support.secret_corpus import CORPUS, ORDINARY, Planted
from tests.support.secret_kinds import KINDS, READABLE, Kind
from tests.support.timing import follows_size, seconds, takes_less_than
from wirewitness.dissectors.core.closed import closed_pairs, closed_text, closed_user
from wirewitness.dissectors.core.opaque import opaque_spans
from wirewitness.dissectors.core.secrets import is_secret_name, is_suspicious, masked, may_hold_secrets

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@pytest.mark.parametrize("planted", CORPUS, ids=lambda one: one.text[:50])
def test_secrets_of_real_systems_are_masked(planted: Planted) -> None:
    shown = masked(planted.text)
    assert planted.secret not in shown
    assert "***" in shown
    assert masked(shown) == shown
    assert may_hold_secrets(planted.text.encode())


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: one.text[:40])
def test_kinds_of_secrets_are_masked(kind: Kind) -> None:
    shown = masked(kind.text)
    assert kind.secret not in shown
    assert kind.secret[4:16] not in shown
    assert masked(shown) == shown
    assert may_hold_secrets(kind.text.encode())
    assert is_suspicious(kind.text)
    shown = masked(kind.text, is_name=True)
    assert (kind.secret in shown) == kind.by_chance
    assert kind.by_chance or is_suspicious(kind.text, is_name=True)


def test_there_are_many_kinds() -> None:
    assert len({kind.secret for kind in KINDS}) == len(KINDS) >= 120


@pytest.mark.parametrize("text", [*ORDINARY, *READABLE])
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


@pytest.mark.parametrize(
    ("alphabet", "size", "most_missed"),
    [("0123456789abcdef", 32, 0.01), (LETTERS + "0123456789", 32, 0.03), (LETTERS + "0123456789+/", 40, 0.02),
     (LETTERS[:26] + "0123456789", 32, 0.02)],
)  # fmt: skip
def test_few_pieces_that_nobody_chose_are_missed(alphabet: str, size: int, most_missed: float) -> None:
    rng = random.Random(size)
    texts = ["".join(rng.choices(alphabet, k=size)) for _ in range(2000)]
    assert sum(not [*opaque_spans(text)] for text in texts) <= most_missed * len(texts)


@pytest.mark.parametrize("name", ["paula", "CN=client.example.com,O=Example", "A1b2C3d4E5f6G7h8I9j0K"])
def test_user_names_are_closed(name: str) -> None:
    shown = closed_user(name)
    assert re.fullmatch(r"\*\*\*[0-9a-f]{4}", shown)
    assert closed_user(f"User:{name}") == f"User:{shown}"
    assert closed_user(shown) == shown


def test_two_users_stay_two() -> None:
    assert len({closed_user(f"user-{number}") for number in range(20)}) == 20


def test_nobody_is_no_user() -> None:
    assert [closed_user(name) for name in ("", "ANONYMOUS", "User:ANONYMOUS")] == ["", "ANONYMOUS", "User:ANONYMOUS"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("need to re-join with the given member-id: a-1-550e8400-e29b-41d4-a716-446655440000", None),
        ("need to re-join with the given member-id: ghp_16C7e42F292c6912E7710c838347Ae12",
         "need to re-join with the given member-id: ***"),
        ("Authentication failed.", None), ("Authentication failed. Winter9x", "***"), ("", None),
        ("rebalance failed due to UnknownMemberIdException", None), ("rebalance failed due to Winter9x", "***"),
    ],
)  # fmt: skip
def test_texts_that_programs_are_known_to_use_are_shown(text: str, shown: str | None) -> None:
    assert closed_text(text) == (text if shown is None else shown)


def test_names_of_properties_stay() -> None:
    assert closed_pairs('[["unit", "Winter9x"], ["", "b"], ["c", ""]]') == '[["unit", "***"], ["", "***"], ["c", ""]]'
    assert closed_pairs("[1") == closed_pairs("[1]") == closed_pairs("{}x") == "***"


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
          '"password","', "<password>", "-p a1bcd ", "n,,n=a", "%22password%22%3A", "a.b:*:c:d:",
          "cookie: ", "mysql -p ", "<assertion ", "aB3dE5fG", "sk-", "0a1b2c3d", "[M", "1234567:"]  # fmt: skip


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
