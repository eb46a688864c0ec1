"""How findings name what they speak of: servers, names from the wire, files.

In: the scenarios of all rules, with addresses of IPv6 and with the file that each row of a capture has. Each is looked
at once, for all of these tests.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from typing import Any

import duckdb
import pytest

from tests.analyser.engine.rules.concerned import connected
from tests.analyser.engine.rules.scenarios import FIRES, Scenario
from tests.support.rows import arrow_from_rows
from tests.support.shares import share
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.rules.evidence_packets import located
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.running import run

FILE = "b.pcapng"
SERVER = re.compile(r"(\[[0-9a-f:]+\]|[^:\[\]]+):\d+")
WITHOUT_BRACKETS = re.compile(r"fd00(:[0-9a-f]+){8}")
# Columns that hold names which people gave.
NAMES = (
    "client_id", "app_name", "group_id", "group_instance_id", "member_id", "topic", "transactional_id", "user_name",
    "database", "collection", "resource_name", "topic_filter",
)  # fmt: skip

# Scenarios by their place in FIRES: the first of each rule, and of rules that tell names the first with these tables.
FIRST = {one.code: number for number, one in reversed([*enumerate(FIRES)])}
WITH_NAMES = {
    (one.code, *sorted(one.rows)): number
    for number, one in reversed([*enumerate(FIRES)])
    if one.code[:3] in ("KAF", "NET", "MQT", "MON")
}


def _id(number: int) -> str:
    return str(FIRES[number])


def in_ipv6(value: Any) -> Any:
    """The same with all IPv4 addresses replaced by IPv6 ones of eight groups: a ninth is a port. Loopback stays it."""
    if isinstance(value, dict):
        return {name: in_ipv6(one) for name, one in value.items()}
    if isinstance(value, list):
        return [in_ipv6(one) for one in value]
    if isinstance(value, str) and re.fullmatch(r"\d+(\.\d+){3}", value):
        if value.startswith("127."):
            return "::1"
        return "fd00:0:0:0:" + ":".join(f"{int(part):x}" for part in value.split("."))
    return value


@cache
def told(number: int) -> tuple[Finding, ...]:
    """What the rule finds, by the scenario's place in FIRES."""
    scenario = FIRES[number]
    rows = {}
    for table, held in scenario.rows.items():
        files = [c for c in arrow_from_rows(table, ()).column_names if c == "file" or c.endswith("_file")]
        rows[table] = [dict.fromkeys(files, FILE) | in_ipv6(dict(row)) for row in held]
    rule = RULES[scenario.code]
    found = run(connected(replace(scenario, rows=rows), [rule]), [rule])
    assert found
    return tuple(found)


@pytest.mark.parametrize("number", FIRST.values(), ids=_id)
def test_servers_are_named_by_address_and_port(number: int) -> None:
    """In one way, so that findings about one server are put together: with IPv6, too."""
    for finding in told(number):
        numbers = finding.numbers
        servers = [one for one in (numbers.get("server"), *numbers.get("servers", ())) if one is not None]
        assert [one for one in servers if not SERVER.fullmatch(one)] == []
        texts = json.dumps([finding.sentence, finding.next_step, finding.subject, numbers], default=str)
        assert WITHOUT_BRACKETS.search(texts) is None


def names_of(scenario: Scenario) -> set[str]:
    rows: list[dict[str, Any]] = [dict(row) for held in scenario.rows.values() for row in held]
    return {row[name] for row in rows for name in NAMES if row.get(name)}


@pytest.mark.parametrize("number", WITH_NAMES.values(), ids=_id)
def test_names_are_told_as_they_are(number: int) -> None:
    """As they stand on the wire, and no sentence begins with one: reports begin with a capital."""
    names = names_of(FIRES[number])
    for name in names:
        whole = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", re.IGNORECASE)
        for finding in told(number):
            shown = [match.group() for match in whole.finditer(finding.sentence)]
            assert [one for one in shown if one not in names] == [], finding.sentence
            assert not whole.match(finding.sentence), finding.sentence


@pytest.mark.parametrize("number", share(range(len(FIRES)), [*FIRST.values()]), ids=_id)
def test_every_evidence_names_its_file(number: int) -> None:
    """With several captures a packet number alone names nothing."""
    found = told(number)
    ids = sorted({one.message_id for finding in found for one in finding.evidence if one.message_id is not None})
    con = duckdb.connect()
    con.register("messages", arrow_from_rows("messages", [{"message_id": one, "file": FILE} for one in ids]))
    for finding in located(con, [*found]):
        assert all(one.file is not None for one in finding.evidence), finding.evidence


def test_a_message_that_is_nowhere_stays_named_by_its_id() -> None:
    con = duckdb.connect()
    finding = told(FIRST["KAF312"])[0]
    named = replace(finding, evidence=(Evidence(None, None, "x-c0"),))
    assert located(con, [named]) == [named]
    con.register("messages", arrow_from_rows("messages", [{"message_id": "x-c9", "file": FILE, "packet_last": 7}]))
    assert located(con, [named]) == [named]
    there = replace(finding, evidence=(Evidence(None, None, "x-c9"),))
    assert [one.evidence for one in located(con, [named, there])] == [named.evidence, (Evidence(FILE, 7, "x-c9"),)]
