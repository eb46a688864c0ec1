"""A fact is derived in one place: no other file names the raw rows that it is made of.

FACTS is the list: a pattern of what a file would have to write to derive the fact again, and the files that may, each
with the reason. Docstrings and comments may name everything.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.conftest import ROOT

_ROOMS = ("analyser", "reports", "app")
_REGISTRY = "declares tables and who reads them"


class Fact(NamedTuple):
    """raw: what its rows are told by, as a pattern of texts in code. allowed: file -> why it may name that."""

    table: str
    raw: str
    allowed: dict[str, str]


FACTS = [
    Fact(
        "kafka_ownership",
        r"\bkafka_assignments\b",
        {
            "analyser/tables/kafka.py": _REGISTRY,
            "analyser/tables/kafka_group_facts.py": "the meaning of a column names it",
            "analyser/engine/facts/stage.py": _REGISTRY,
            "analyser/kafka/facts/group_requests.py": "the fact's own",
            "analyser/kafka/facts/ownership.py": "the fact's own",
            "analyser/kafka/rules/kaf313_unknown_name.py": "names of topics, whoever owns them",
        },
    ),
    Fact(
        "kafka_generations",
        r"(?i)\blag\(generation\)",
        {
            "analyser/kafka/facts/generations.py": "the fact's own",
            "analyser/kafka/facts/commit_beside.py": "the generation of a committer's commit before",
            "analyser/kafka/facts/group_members.py": "the generation before, of the fact's rows",
        },
    ),
    Fact(
        "kafka_clients",
        r"(?i)having count\(distinct group_id\)",
        {
            "analyser/kafka/facts/clients.py": "the fact's own",
            "analyser/kafka/rules/kaf132_group_each_start.py": "all groups of a client, not the one it reads for",
        },
    ),
    Fact(
        "kafka_members",
        r"(?i)\bevent = 'leave'",
        {
            "analyser/kafka/facts/group_requests.py": "the fact's own",
            "analyser/kafka/rules/kaf119_poison_loop.py": "of a client with several member ids in turn",
            "reports/protocols/kafka/why/groups.py": "the request itself, to be shown",
        },
    ),
    Fact("gaps", r"\bcode = 'gap'", {"analyser/engine/facts/gaps.py": "the fact's own"}),
    Fact(
        "kafka_topics",
        r"operation = 'DeleteTopics'",
        {
            "analyser/kafka/facts/log_ends.py": "the fact's own",
            "reports/protocols/kafka/why/partition.py": "the request itself, to be shown",
        },
    ),
    Fact(
        "kafka_log_ends",
        r'"timestamp" = -[12]|max\(high_watermark\)',
        {
            "analyser/kafka/facts/log_ends.py": "the fact's own",
            "analyser/kafka/facts/producers_stage.py": "of the answers of one wait for a transaction",
        },
    ),
    Fact(
        "kafka_leaders",
        r"kafka_leader_epochs\b|\bcurrent_leader_id\b|\bdiverging_",
        {
            "analyser/tables/kafka.py": _REGISTRY,
            "analyser/engine/facts/stage.py": _REGISTRY,
            "analyser/kafka/facts/leaders.py": "the fact's own",
            "analyser/kafka/facts/fetch_ranges.py": "which answers told a reader a position",
            "analyser/kafka/facts/refusals.py": "errors in responses of every API",
        },
    ),
    Fact(
        "kafka_fetch_ranges",
        r"first_offset (<|>|<>|IS DISTINCT FROM) (next_offset_before|stored_offset|expected)",
        {"analyser/kafka/facts/fetch_jumps.py": "the fact's own: where a run began elsewhere"},
    ),
    Fact(
        "kafka_record_times",
        r"\blog_append_timestamp\b",
        {"analyser/kafka/facts/producers_stage.py": "the fact's own"},
    ),
    Fact(
        "kafka_value_rounds",
        r"\bcontent_crc\b",
        {
            "analyser/kafka/facts/values_twice.py": "whether a value is in its topic twice",
            "analyser/kafka/facts/value_rounds.py": "the fact's own",
            "analyser/kafka/facts/producers_stage.py": "whether it is the same batch, sent again",
        },
    ),
    Fact(
        "mqtt_topic_writers",
        r"payload_crc32 <> lag\(payload_crc32\)",
        {"analyser/mqtt/facts/topic_growth.py": "the fact's own"},
    ),
    Fact(
        "mqtt_wills",
        r"(?i)will_delay_s, 0\)",
        {"analyser/mqtt/facts/wills.py": "the fact's own"},
    ),
    Fact(
        "kafka_committed",
        r"(?i)operation (= '|IN \(')(OffsetDelete|DeleteGroups)'|lag\(committed_offset\)",
        {
            "analyser/kafka/facts/committed.py": "the fact's own",
            "analyser/kafka/facts/group_state_signs.py": "a group that is deleted has no state",
            "analyser/archive/aggregate/lags.py": "what an hour keeps of it for later ones",
            "reports/protocols/kafka/questions/lag_history.py": "of bins of the lag, whatever was stored in them",
            "reports/protocols/kafka/questions/stored_offsets.py": "of log segments, which have no commits",
        },
    ),
    Fact(
        "kafka_lag",
        r"(?i)(log_end\w*\}?(::hugeint)?|(?<!before)::hugeint) - (greatest\()?committed_offset",
        {
            "analyser/kafka/facts/lag.py": "the fact's own",
            "analyser/kafka/rules/kaf108_lag_growing.py": "suspects, of rows that it reads anyway",
            "reports/protocols/kafka/questions/group_partitions.py": "what retention took of the lag",
            "reports/protocols/kafka/why/pace.py": "of the first commit of one member, when it was asked for",
        },
    ),
]


def texts_of(source: str) -> Iterator[str]:
    """Texts in code: constants and parts of f-strings, without docstrings."""
    tree = ast.parse(source)
    told = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


@pytest.mark.parametrize("fact", FACTS, ids=[fact.table for fact in FACTS])
def test_no_other_file_names_the_raw_rows_of_a_fact(fact: Fact) -> None:
    files = [path for room in _ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    found = {
        str(path.relative_to(ROOT))
        for path in files
        if re.search(fact.raw, source := path.read_text()) and any(re.search(fact.raw, one) for one in texts_of(source))
    }
    assert found == {*fact.allowed}, f"read the table {fact.table} instead"


def test_a_text_in_code_is_found_and_a_docstring_is_not() -> None:
    source = (
        '"""kafka_assignments"""\nX = f"from kafka_assignments where {1}"\ndef f():\n    """of b"""\n    return "c"\n'
    )
    assert [*texts_of(source)] == ["from kafka_assignments where ", "c"]
