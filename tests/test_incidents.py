"""Captures with known truth: the culprit is named, nobody innocent is accused, healthy ones are silent.

They and what is expected of them (`expected.json`) lie beside the repository.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import wirewitness
from tests.conftest import KNOWN_INCIDENTS
from wirewitness.analyser.base.severity import severity_rank

EXPECTED: dict[str, dict[str, Any]] = (
    json.loads((KNOWN_INCIDENTS / "expected.json").read_text()) if (KNOWN_INCIDENTS / "expected.json").exists() else {}
)


def text(finding: dict[str, Any]) -> str:
    return " ".join(str(finding[column]) for column in ("code", "sentence", "subject", "numbers"))


@pytest.mark.skipif(not EXPECTED, reason="the folder ../shared/incidents is not there")
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_what_is_said_of_a_capture(name: str) -> None:
    (path,) = KNOWN_INCIDENTS.glob(f"{name}.pcap*")
    wanted = EXPECTED[name]
    with wirewitness.read(Path(path)) as analysis:
        findings = analysis.findings().to_dict("records")
    least = severity_rank(wanted.get("least", "warning"))
    heard = [text(one) for one in findings if severity_rank(one["severity"]) >= least]
    strong = [one for one in findings if severity_rank(one["severity"]) >= severity_rank("warning")]
    for pattern in wanted.get("named", ()):
        assert any(re.search(pattern, one) for one in heard), pattern
    for pattern in wanted.get("not_named", ()):
        assert [text(one) for one in strong if re.search(pattern, text(one))] == []
    if wanted.get("silent"):
        assert [one["code"] for one in strong if one["code"] not in wanted.get("allow", ())] == []
