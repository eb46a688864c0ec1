"""Names in titles are short and still told apart."""

from __future__ import annotations

from wirewitness.analyser.base.titles import client_title, first_of, short, who_title


def test_a_long_name_keeps_its_begin_and_end() -> None:
    assert short("orders-0") == "orders-0"
    assert short("o" * 40 + "-invoices-17") == "o" * 20 + "…invoices-17"
    assert short(None) == "?"
    assert short("a\x1b[31mb") == "a\\x1b[31mb"


def test_a_client_is_named_by_what_is_known() -> None:
    assert client_title({"client_id": "shop", "client_address": "10.0.0.1"}) == "shop"
    assert client_title({"client_id": None, "client_address": "10.0.0.1"}) == "10.0.0.1"
    assert client_title({"client_id": "", "client_address": None}) == "unknown client"
    assert who_title("shop", "10.0.0.1") == "shop at 10.0.0.1"
    assert who_title("s" * 30, "2001:db8::1234:5678") == "s" * 30
    assert who_title(None, None) == "unknown client"


def test_of_many_names_the_first_and_how_many_more() -> None:
    assert first_of(["a", "b", "a"]) == "a, b"
    assert first_of([f"orders-{n}" for n in range(6)]) == "orders-0, orders-1, orders-2 and 3 more"
    assert first_of(["x" * 40]) == "x" * 20 + "…" + "x" * 11
    assert first_of([]) == ""
