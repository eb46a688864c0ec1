"""Findings name a server in one way, so that those about one server are put together: with IPv6, too."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from analyser.detectors import DETECTORS
from analyser.detectors.findings import Finding
from analyser.detectors.running import run
from tests.analyser.detectors.concerned import connected
from tests.analyser.detectors.scenarios import FIRES, Scenario

SERVER = re.compile(r"(\[[0-9a-f:]+\]|[^:\[\]]+):\d+")
WITHOUT_BRACKETS = re.compile(r"fd00(:[0-9a-f]+){8}")
EACH = [*{scenario.code: scenario for scenario in reversed(FIRES)}.values()]


def in_ipv6(value: Any) -> Any:
    """The same with all IPv4 addresses replaced by IPv6 ones of eight groups: a ninth is a port."""
    if isinstance(value, dict):
        return {name: in_ipv6(one) for name, one in value.items()}
    if isinstance(value, list):
        return [in_ipv6(one) for one in value]
    if isinstance(value, str) and re.fullmatch(r"\d+(\.\d+){3}", value):
        return "fd00:0:0:0:" + ":".join(f"{int(part):x}" for part in value.split("."))
    return value


def told_in_ipv6(scenario: Scenario) -> list[Finding]:
    rows = {table: [in_ipv6(dict(row)) for row in held] for table, held in scenario.rows.items()}
    return run(connected(replace(scenario, rows=rows)), [DETECTORS[scenario.code]])


@pytest.mark.parametrize("scenario", EACH, ids=str)
def test_servers_are_named_by_address_and_port(scenario: Scenario) -> None:
    found = told_in_ipv6(scenario)
    assert found
    for finding in found:
        numbers = finding.numbers
        servers = [one for one in (numbers.get("server"), *numbers.get("servers", ())) if one is not None]
        assert [one for one in servers if not SERVER.fullmatch(one)] == []
        texts = json.dumps([finding.sentence, finding.next_step, finding.subject, numbers], default=str)
        assert WITHOUT_BRACKETS.search(texts) is None
