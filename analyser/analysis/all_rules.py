"""Tables to findings. In: views that `analyser/engine/facts` has enriched. Out: findings, and rules that broke.

Here is the table of contents: families in the order in which they run; each lists its own in `rules.py`. The page of a
rule is the docstring of its module (`DETECTORS[code].page`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import duckdb

from wirewitness.analyser.engine.outliers.populations import Population
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.engine.rules.running import Failure, run
from wirewitness.analyser.kafka.rules import rules as kafka
from wirewitness.analyser.mongo.rules import rules as mongo
from wirewitness.analyser.mqtt.rules import rules as mqtt
from wirewitness.analyser.network.rules.capture import rules as capture
from wirewitness.analyser.network.rules.net import rules as net
from wirewitness.analyser.network.rules.tcp import rules as tcp
from wirewitness.analyser.network.rules.tls import rules as tls

RULES: dict[str, Rule] = {
    rule.code: rule for family in (capture, tcp, tls, net, kafka, mqtt, mongo) for rule in family.RULES
}


def populations() -> tuple[Population, ...]:
    """What is compared for the table `stands_out`, of every protocol."""
    from wirewitness.analyser.kafka.facts import populations as of_kafka
    from wirewitness.analyser.mongo.facts import populations as of_mongo
    from wirewitness.analyser.mqtt.facts import populations as of_mqtt
    from wirewitness.analyser.network.facts import populations as of_any

    return tuple(one for each in (of_any, of_kafka, of_mqtt, of_mongo) for one in each.POPULATIONS)


def questions() -> dict[str, str]:
    """Which of `QUESTIONS` the rules ask, by code."""
    return {code: rule.question for code, rule in RULES.items()}


def run_rules(
    con: duckdb.DuckDBPyConnection,
    codes: Iterable[str] | None = None,
    failures: list[Failure] | None = None,
    rows: Mapping[str, int] = MappingProxyType({}),
    folder: Path | None = None,
) -> list[Finding]:
    """Findings of the rules with these codes (None: all), on views named like the registered tables.

    rows: how many rows tables have, where that is known. folder: for temporary files, where there is one.

    A rule that raises costs its findings of that one partition and is added to `failures`; without such a list
    the error is raised. KeyError for an unknown code.
    """
    chosen = list(RULES.values()) if codes is None else [RULES[code] for code in codes]
    return run(con, chosen, failures, rows=rows, folder=folder)


def tables_needed(codes: Iterable[str] | None = None) -> frozenset[str]:
    """Tables that these rules look at (None: all rules). KeyError for an unknown code."""
    chosen = list(RULES.values()) if codes is None else [RULES[code] for code in codes]
    return frozenset(table for rule in chosen for table in rule.needs)
