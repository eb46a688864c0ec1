"""Incidents whose truth has patterns instead of codes: who is named, who is accused wrongly, what is written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import zstandard

from tests.lab.incidents import expect, told
from tests.lab.incidents.verdict import Said, verdict


class Someone(NamedTuple):
    client_id: str
    address: str


BAD, GOOD = Someone("bill-a", "10.77.0.11"), Someone("bill-b", "10.77.0.12")
WHO = [told.any_of(told.client(BAD), told.name("orders-bill")), "join|leave"]
CLIENTS = [{"client_id": one.client_id, "address": one.address, "library": "franz", "group": "orders-bill",
            "topics": ["eu.orders"]} for one in (BAD, GOOD)]  # fmt: skip


def truth_of(**changes: Any) -> dict[str, Any]:
    return {
        "fault": "something",
        "healthy": False,
        "culprit": {"client_id": BAD.client_id, "address": BAD.address},
        "expected": [],
        "allowed": [],
        "affected": {"clients": CLIENTS[:1], "groups": ["orders-bill"]},
        "member_ids": {"orders-bill": {}, "stock-sync": {}},
        "facts": {
            "clients": CLIENTS,
            "broker": {"clients": ["bill-a@10.77.0.11", "bill-b@10.77.0.12", "sync@10.77.0.19"]},
        },
        "when": [None, None],
        "capture": ["", ""],
        "must_say": [told.sentence(WHO, "again|repeat")],
        "must_not_say": [told.client(GOOD)],
        "least": "warning",
        **changes,
    }


@pytest.mark.parametrize(
    ("words", "result", "wrong"),
    [
        ("client bill-a joins again", "named first", 0),
        ("Again and again 10.77.0.11 asks to join", "named first", 0),
        ("group orders-bill: a member leaves, repeatedly", "named first", 0),
        ("client bill-a stood still again", "missed", 0),
        ("client bill-a joins", "missed", 0),
        ("client bill-ab joins again", "missed", 0),
        ("client bill-b joins again", "misled", 1),
        ("group stock-sync waits", "misled", 1),
    ],
)
def test_a_finding_is_judged_by_patterns(words: str, result: str, wrong: int) -> None:
    found = verdict("x", truth_of(), [Said("KAF101", "warning", words, words)])
    assert (found.result, len(found.wrong)) == (result, wrong)


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("eu.orders-5 is read by nobody", True),
        ('nobody reads it {"topic": "eu.orders", "partition": 5}', True),
        ("eu.orders-57", False),
        ("neu.orders-5", False),
        ('{"topic": "eu.orders", "partition": 4}', False),
    ],
)
def test_a_partition_is_said_whole_or_in_two_fields(text: str, fits: bool) -> None:
    assert told.fits(told.partition("eu.orders", 5), text) == fits


NUMBERS = '{"file": "/captures/joins_again-1/capture.pcapng", "address": "10.77.0.12"}'
PATTERN = told.sentence([told.client(BAD)], "again|repeat")


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("KAF101 client bill-a joins again " + NUMBERS, True),
        ("KAF101 client bill-a joins " + NUMBERS, False),
        ('{"subject": {"client": "bill-a"}, "sentence": "it joins again", "unit": ""}', True),
        ('{"subject": {"client": "bill-a"}, "sentence": "it joins", "measure": "repeats"}', False),
    ],
)
def test_what_is_wrong_must_stand_in_the_sentence(text: str, fits: bool) -> None:
    assert told.fits(PATTERN, text) == fits


def test_who_is_named_among_the_numbers_is_not_accused() -> None:
    accused = told.in_sentence(told.client(GOOD))
    assert told.fits(accused, "KAF101 client bill-b joins again " + NUMBERS)
    assert not told.fits(accused, "KAF101 client bill-a joins again " + NUMBERS)


def test_what_is_expected_is_written_beside_the_captures(tmp_path: Path) -> None:
    for name, truth in {
        "joins-1": truth_of(least="info"),
        "quiet-1": truth_of(healthy=True),
        "wide-1": truth_of(cluster_wide=True),
        "by-code-1": {name: value for name, value in truth_of().items() if name != "must_say"},
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "truth.json").write_text(json.dumps(truth))
        (tmp_path / name / "capture.pcapng").write_bytes(b"packets")
    assert expect.main([str(tmp_path)]) == 0
    found = json.loads((tmp_path / "expected.json").read_text())
    assert set(found) == {"joins-1", "quiet-1", "wide-1"}
    assert found["quiet-1"] == {"silent": True}
    assert found["joins-1"]["least"] == "info"
    assert found["wide-1"]["not_named"] == [told.in_sentence(told.client(GOOD))]
    others = found["joins-1"]["not_named"][-1]
    assert [told.fits(others, word) for word in ("sync", "stock-sync", "bill-a", "bill-b", "orders-bill")] == [
        True, True, False, False, False,
    ]  # fmt: skip
    packed = (tmp_path / "joins-1.pcapng.zst").read_bytes()
    assert zstandard.ZstdDecompressor().decompress(packed) == b"packets"
    assert "bill-a (franz, 10.77.0.11, group orders-bill, eu.orders)" in (tmp_path / "TRUTH.md").read_text()
