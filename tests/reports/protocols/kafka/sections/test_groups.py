"""The groups of a report stand as `groups --state` says."""

from __future__ import annotations

import wirewitness
from tests.conftest import SAMPLES
from wirewitness.reports.base.formats.document import Cells
from wirewitness.reports.base.formats.html import render as html
from wirewitness.reports.base.formats.markdown import render as markdown
from wirewitness.reports.base.formats.text import render
from wirewitness.reports.base.questions.source import rows
from wirewitness.reports.protocols.kafka.questions.view import view_sql
from wirewitness.reports.protocols.kafka.questions.views import VIEWS
from wirewitness.reports.protocols.kafka.sections.view import state_line
from wirewitness.reports.report.contents import report

KAFKAS = ("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")


def test_each_group_of_a_report_says_how_it_stands() -> None:
    with wirewitness.read(SAMPLES / "kafka_fenced_commit.pcapng") as source:
        text = render(report(source), 300)
        stand = {row["group_id"]: state_line(row) for row in rows(source, view_sql(VIEWS["groups"]["state"]))}
    title = next(line for line in text.splitlines() if " member id" in line).split()[0]
    assert " since 2026-" in stand[title]
    assert stand[title] in " ".join(text.split())


def test_partitions_have_the_headings_of_groups() -> None:
    with wirewitness.read(SAMPLES / "kafka_fenced_commit.pcapng") as source:
        sections = [section for section in report(source) if section.title == "CONSUMER GROUPS"]
    tables = [block for block in sections[0].blocks if isinstance(block, Cells) and block.header[0] == "TOPIC"]
    assert tables
    assert all(table.header[: len(KAFKAS)] == KAFKAS for table in tables)
    assert set(tables[0].header) <= {column.capitals for column in VIEWS["groups"][""].shown}
    for text in (markdown(sections, "report"), html(sections, "report")):
        assert all(name in text for name in KAFKAS)
