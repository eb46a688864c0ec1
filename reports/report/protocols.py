"""What each protocol adds to a report, a line for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from wirewitness.reports.base.formats.document import Section
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.questions.source import Source
from wirewitness.reports.protocols.kafka.sections import section as kafka
from wirewitness.reports.protocols.mongo.sections import section as mongo
from wirewitness.reports.protocols.mqtt.sections import section as mqtt


class ProtocolReport(NamedTuple):
    """One protocol's part.

    tables: those that it reads, besides the tables that all protocols share. sections: for people; empty where the
    capture holds nothing of the protocol. values: keys and values of the JSON report, there in any case.
    """

    tables: tuple[str, ...]
    sections: Callable[[Source, Sequence[Finding]], list[Section]]
    values: Callable[[Source], dict[str, Any]]


PROTOCOL_REPORTS = {
    title: ProtocolReport(module.TABLES_READ, module.sections, module.values)
    for title, module in (("Kafka", kafka), ("MQTT", mqtt), ("MongoDB", mongo))
}

# Reading a capture for a report needs no other tables; a dataset's has those of `reports/report/trends.py` besides.
REPORT_TABLES = (
    *("captures", "flows", "messages", "exchanges", "findings", "stands_out"),
    *(table for report in PROTOCOL_REPORTS.values() for table in report.tables),
)
