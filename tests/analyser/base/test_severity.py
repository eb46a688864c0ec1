"""The order of severities and confidences."""

from __future__ import annotations

import click

from wirewitness.analyser.base.severity import SEVERITIES, confidence_rank, severity_rank
from wirewitness.app.cli.analyse import analyse


def test_ranks() -> None:
    assert severity_rank("info") < severity_rank("warning") < severity_rank("critical")
    assert confidence_rank("low") < confidence_rank("medium") < confidence_rank("high")
    assert severity_rank("fatal") < severity_rank("info")


def test_the_command_line_offers_them_all() -> None:
    (fail_on,) = (p for p in analyse.params if p.name == "fail_on")
    assert isinstance(fail_on.type, click.Choice)
    assert tuple(fail_on.type.choices) == SEVERITIES
