"""A fact about a protocol stands with the protocol: no other product file names one.

The names are those of the registry, so a new protocol is looked for too. Comments and docstrings may take one protocol
as an example; a line of them that names two is a list, and lists come from the registry.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.dissectors.registry import OPTIONAL, PROTOCOLS
from wirewitness.reports.report.tshark.protocols import COMPARED

NAMES = {name: {name, dissector.title.lower(), dissector.letters.lower()} for name, dissector in PROTOCOLS.items()}

# Where a protocol joins, a line for each.
TABLES_OF_CONTENTS = {
    "analyser/engine/facts/stage.py",
    "reports/report/tshark/protocols.py",
    "analyser/analysis/all_rules.py",
    "reports/base/otel/protocols.py",
    "analyser/tables/tables.py",
    "app/cli/main.py",
    "app/dashboard/pages.py",
    "dissectors/registry.py",
    "reports/report/protocols.py",
}
# Files about one protocol or some, as a whole or in a part, whose names do not say so.
ABOUT_SOME = {
    "analyser/analysis/capture_tables.py": "kafka",
    "analyser/analysis/joined.py": "kafka",
    "analyser/analysis/masking.py": "kafka",
    "analyser/archive/aggregate/context.py": "kafka",
    "analyser/archive/aggregate/lags.py": "kafka",
    "analyser/archive/commit/common.py": "kafka",
    "analyser/capture/log_segment.py": "kafka",
    "analyser/capture/reader.py": "kafka",  # its request log, which is no capture
    "analyser/capture/request_log.py": "kafka",
    "analyser/decoding/rows/internal_records.py": "kafka",
    "analyser/decoding/rows/record_arrays.py": "kafka",
    "analyser/decoding/rows/record_places.py": "kafka",
    "analyser/engine/facts/naming_tables.py": "kafka",
    "analyser/engine/facts/stages.py": "kafka mongo mqtt",
    "analyser/engine/incidents/incident_facts.py": "kafka",
    "analyser/engine/incidents/incident_links.py": "kafka mongo mqtt",
    "analyser/engine/incidents/incidents.py": "kafka mongo",
    "analyser/engine/rules/benign_errors.py": "kafka mongo",
    "analyser/engine/rules/broker_clients.py": "kafka",
    "analyser/network/facts/request_populations.py": "kafka mongo",
    "analyser/network/rules/capture/cap106_encrypted_share.py": "kafka mongo",
    "analyser/network/rules/net/net101_idle_dropped.py": "kafka mongo mqtt",
    "analyser/network/rules/net/net103_retry_storm.py": "kafka mongo mqtt",
    "analyser/network/rules/net/net104_reconnect_herd.py": "mqtt",
    "analyser/network/rules/tls/settings.py": "kafka mongo mqtt",
    "analyser/network/rules/tls/tls106_wrong_port.py": "kafka",
    "analyser/network/rules/tls/tls_flows.py": "kafka",
    "dissectors/core/secret_forms.py": "mongo",
    "analyser/tables/renamed.py": "kafka mqtt",
    "analyser/tables/selection.py": "kafka",
    "app/cli/commands.py": "kafka mongo",
    "app/cli/guides.py": "kafka mongo mqtt",
    "app/cli/kafka_views.py": "mongo mqtt",  # `clients`
    "app/cli/live.py": "kafka",  # its request log
    "app/cli/live_output.py": "kafka",
    "app/cli/live_screen.py": "kafka",
    "app/cli/mcp_server/answers.py": "kafka",
    "app/cli/mcp_server/server.py": "kafka mongo mqtt",
    "app/cli/records.py": "kafka",
    "app/cli/shapes.py": "mongo",
    "app/dashboard/charts/commits.py": "kafka",
    "app/dashboard/precomputed.py": "kafka",
    "app/dashboard/views/clients.py": "kafka",
    "app/dashboard/views/compare.py": "kafka mongo mqtt",
    "app/dashboard/views/finding.py": "kafka",
    "app/dashboard/views/finding_who.py": "kafka",
    "app/shared/options.py": "kafka",
    "dissectors/carriers/tls/key_logging.py": "kafka mongo mqtt",
    "reports/base/questions/client_rows.py": "kafka",
    "reports/base/questions/exchange_text.py": "kafka mongo mqtt",
    "reports/base/questions/review_subject.py": "kafka",  # client ids that its libraries give
    "reports/base/questions/unclassified.py": "kafka",
    "reports/base/questions/wanted_exchanges.py": "kafka mongo mqtt",
    "reports/base/why/asking.py": "kafka",
    "reports/base/why/network.py": "kafka mongo",
    "reports/protocols/kafka/questions/topics.py": "mongo mqtt",  # `clients`
    "reports/protocols/kafka/questions/views.py": "mongo mqtt",  # the same
    "reports/report/compare/comparison.py": "kafka",
    "reports/report/compare/differing_clients.py": "kafka",
    "reports/report/compare/differing_groups.py": "kafka",
    "reports/report/compare/differing_settings.py": "kafka mongo mqtt",
    "reports/report/compare/differing_shapes.py": "mongo",
    "reports/report/compare/differing_sizes.py": "kafka mqtt",
    "reports/report/compare/differing_topics.py": "kafka mqtt",
    "reports/report/compare/distinguishing.py": "kafka mongo mqtt",
    "reports/report/differences.py": "kafka mqtt",
    "reports/report/trends.py": "kafka",
    "reports/report/tshark/match.py": "mqtt",
    "reports/report/why/exchange.py": "kafka mongo",
    "reports/report/why/findings.py": "kafka mqtt",
    "reports/report/why/subjects.py": "kafka mongo mqtt",
    "reports/report/why/tables.py": "kafka mongo mqtt",
    "reports/report/why/walk.py": "kafka mqtt",
}


@cache
def product_files() -> list[Path]:
    """All but the dissectors' own folders: no protocol imports another, and their names for things are the wire's."""
    packages = ("analyser", "app", "dissectors", "reports")
    found = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    return [path for path in found if path.relative_to(ROOT).parts[0] != "dissectors"
            or path.relative_to(ROOT).parts[1] not in NAMES]  # fmt: skip


def own_of(path: str) -> set[str]:
    """The protocols that a file is about."""
    letters = {protocol for protocol, names in NAMES.items() if any(name in path.lower() for name in names)}
    return letters | set(ABOUT_SOME.get(path, "").split())


@cache
def named(text: str) -> frozenset[str]:
    """Protocols whose name, title or letters are a word, or a part of one, of this text."""
    words = set(re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text).lower().replace("mongodb", "mongo")))
    return frozenset(protocol for protocol, names in NAMES.items() if words & names)


def said(path: Path) -> tuple[dict[int, frozenset[str]], dict[int, frozenset[str]]]:
    """Line -> protocols: in code, and in comments and docstrings."""
    code: dict[int, frozenset[str]] = {}
    prose: dict[int, frozenset[str]] = {}
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        docstring = token.type == tokenize.STRING and before in (tokenize.NEWLINE, tokenize.INDENT)
        if token.type in (tokenize.NAME, tokenize.STRING, tokenize.COMMENT):
            kept = prose if docstring or token.type == tokenize.COMMENT else code
            for number, line in enumerate(token.string.splitlines(), token.start[0]):
                kept[number] = kept.get(number, frozenset()) | named(line)
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.type
    return code, prose


@pytest.mark.parametrize("folder", sorted({str(path.parent.relative_to(ROOT)) for path in product_files()}))
def test_only_its_own_files_name_a_protocol(folder: str) -> None:
    told = []
    for path in product_files():
        name = str(path.relative_to(ROOT))
        if str(path.parent.relative_to(ROOT)) == folder and name not in TABLES_OF_CONTENTS:
            told += [(name, *line) for line in others_named(path, own_of(name))]
    assert told == []


def others_named(path: Path, own: set[str]) -> Iterator[tuple[int, list[str]]]:
    """Lines that name a protocol that the file is not about, in comments and docstrings two; and which."""
    if named(path.read_text()) <= own:
        return
    code, prose = said(path)
    yield from ((number, sorted(found - own)) for number, found in code.items() if found - own)
    yield from ((number, sorted(found)) for number, found in prose.items() if len(found - own) > 1)


@pytest.mark.parametrize("name", sorted(TABLES_OF_CONTENTS | ABOUT_SOME.keys()))
def test_exceptions_are_needed(name: str) -> None:
    code, _ = said(ROOT / name)
    found = frozenset[str]().union(*code.values())
    assert found >= (
        set(ABOUT_SOME[name].split()) if name in ABOUT_SOME else NAMES.keys() if name != "app/cli/main.py" else set()
    )


def test_a_name_is_found_in_every_form() -> None:
    assert named('"kafka_records"') == named("KafkaRow") == named("KAFKA_ROWS") == {"kafka"}
    assert named("MongoDB and MQTT") == {"mongo", "mqtt"}
    assert named("common, monotonic, format") == frozenset()


def test_titles_colours_and_letters_tell_protocols_apart() -> None:
    dissectors = [*PROTOCOLS.values(), *OPTIONAL.values()]
    for told in ("name", "title", "colour", "letters"):
        assert len({getattr(dissector, told) for dissector in dissectors}) == len(dissectors), told
    assert all(re.fullmatch("#[0-9a-f]{6}", dissector.colour) for dissector in dissectors)
    assert all(re.fullmatch("[A-Z]{3}", dissector.letters) for dissector in dissectors)


@pytest.mark.parametrize("code", RULES)
def test_rules_have_the_letters_of_their_protocol(code: str) -> None:
    protocol, family = re.search(r"\.analyser\.(\w+)\.rules\.(\w+)", RULES[code].detect.__module__).groups()
    letters = {p.name: p.letters for p in PROTOCOLS.values()}
    assert code[:3] == (family[:3].upper() if protocol == "network" else letters[protocol])


def test_columns_of_the_cross_check_are_of_one_protocol_each() -> None:
    columns = [column.rpartition(".")[2] for compared in COMPARED.values() for column in compared.columns]
    assert len(set(columns)) == len(columns)
