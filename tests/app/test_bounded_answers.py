"""Enormous arguments and answers: what the program says of them stays below the limits that docs/limits.md names."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from markupsafe import Markup

from tests.app.program import COMMAND, environment, run
from tests.conftest import ROOT, SAMPLES
from wirewitness.analyser.base.bounded import MOST_MESSAGE, MOST_QUOTED
from wirewitness.analyser.tables.refused import MOST_NESTED
from wirewitness.app.cli.commands import COMMANDS
from wirewitness.app.cli.mcp_server.answers import MOST_BYTES, MOST_ROWS
from wirewitness.app.cli.mcp_server.server import MOST_ASKED
from wirewitness.app.shared.failure import complain

SAMPLE = str(SAMPLES / "kafka_fenced_commit.pcapng")
LONG = "x" * 90_000
# Answers are JSON in JSON: each quotation mark and backslash twice.
WIRE = 2 * MOST_BYTES + 1_000
# One argument of each tool that takes any.
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("overview", {}), ("overview", {"unasked": LONG}), ("findings", {"severity": LONG}),
    ("findings", {"limit": 10**30}), ("finding", {"finding_id": LONG}), ("rule", {"code": LONG}), ("stands_out", {}),
    ("compare", {"at": LONG}), ("compare", {"first": f"{LONG}/", "second": "/2027-01-01"}),
    ("compare", {"first": "/2027-01-01", "second": "/2027-01-01"}), ("differ", {"where": LONG}),
    ("differ", {"where": f"client_id <> '{LONG}'"}), ("expect", {"contract": LONG}), ("expect", {"about": LONG}),
    ("expect", {"contract": "kafka-consumer", "about": {"group": LONG}}), ("tables", {}), ("columns", {"table": LONG}),
    ("groups", {"group": LONG}), ("groups", {"at": LONG}), ("why", {"subject": LONG}),
    ("why", {"subject": "payments 4", "at": LONG}), ("message", {"message_id": LONG}),
    ("query", {"sql": LONG}), ("query", {"sql": "select 1", "limit": LONG}),
    ("query", {"sql": f'select 1 as "{LONG}"'}),
    ("query", {"sql": "select repeat('x', 3000000) as x from range(3)"}),
    ("query", {"sql": "select repeat('€\x01', 40000) as x from range(2000)", "limit": 2000}),
    ("query", {"sql": "select error(repeat('x', 3000000))"}), ("query", {"sql": "select range(1000000) as x"}),
    (LONG, {}),
]  # fmt: skip


@pytest.fixture(scope="module")
def answers() -> list[str]:
    """What the server puts on the wire for each of ASKED, and for one question beyond its limit."""
    from mcp import Client, MCPError, StdioServerParameters

    async def session() -> list[str]:
        words = [*COMMAND[1:], "mcp", SAMPLE]
        program = StdioServerParameters(command=COMMAND[0], args=words, env=environment(), cwd=os.getcwd())
        told = []
        async with Client(program) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            assert tools == {name for name, _ in ASKED} - {LONG}
            for name, given in [*ASKED, ("query", {"sql": "x" * 3_000_000})]:
                try:
                    told.append((await client.call_tool(name, given)).model_dump_json())
                except MCPError as error:
                    told.append(str(error))
        return told

    return asyncio.run(session())


def test_no_answer_of_the_mcp_server_grows_with_what_is_asked_or_found(answers: list[str]) -> None:
    assert len(answers) == len(ASKED) + 1
    assert [(asked, len(answer)) for (asked, _), answer in zip(ASKED, answers, strict=False)
            if len(answer.encode()) > WIRE] == []  # fmt: skip
    assert all(answers)
    assert re.fullmatch(rf"the question has 3,000,\d{{3}} characters; at most {MOST_ASKED:,} are read", answers[-1])


def test_what_was_left_out_is_counted(answers: list[str]) -> None:
    told = {asked: json.loads(answer)["content"][0]["text"] for asked, answer in zip(
        [json.dumps(one) for one in ASKED], answers, strict=False) if answer.startswith("{")}  # fmt: skip
    long_error = told[json.dumps(("columns", {"table": LONG}))]
    assert len(long_error) <= MOST_MESSAGE
    assert "characters left out) … " in long_error
    assert long_error.endswith("`tables` lists them")
    cells = [json.loads(line) for line in told[json.dumps(ASKED[25])].splitlines()]
    assert len(cells) == 3
    assert all(re.search(r"\(2,99\d,\d{3} characters left out\)", row["x"]) for row in cells)
    rows = [json.loads(line) for line in told[json.dumps(ASKED[26])].splitlines()]
    assert rows[-1]["more"] is True
    (row,) = (json.loads(line) for line in told[json.dumps(ASKED[28])].splitlines())
    assert row["x"][0] == 0
    assert row["x"][-1] == f"… ({1_000_000 - len(row['x']) + 1:,} more left out)"


# What a caller gave that a line quotes. The system lets no argument have more than 128 KiB.
GIVEN: dict[str, list[str]] = {
    "analyse": [LONG], "findings": [SAMPLE, "--review", LONG], "expect": [LONG, SAMPLE], "why": [SAMPLE, LONG, "4"],
    "show": [SAMPLE, LONG], "extract": [SAMPLE, "--finding", LONG, "-o", "x.pcapng"], "table": [LONG, SAMPLE],
    "query": [SAMPLE, f"select {LONG}"], "tables": [LONG], "groups": [SAMPLE, "--group", LONG, "-o", LONG],
    "topics": [SAMPLE, "--decode-as", LONG], "brokers": [SAMPLE, "--protocol", LONG], "clients": [SAMPLE, "--at", LONG],
    "records": [SAMPLE, "--where", LONG], "compare": [SAMPLE, "--at", LONG], "differ": [SAMPLE, "--where", LONG],
    "shapes": [LONG], "detectors": [LONG], "guide": [LONG], "sample": [LONG], "dashboard": [LONG, "--no-browser"],
    "live": ["-r", LONG], "crosscheck": [LONG], "mcp": [LONG], "archive": [LONG, "--output", LONG],
    "otel": [SAMPLE, "--endpoint", LONG],
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_no_line_of_a_command_grows_with_what_it_was_given(name: str, tmp_path: Path) -> None:
    done = run(name, *GIVEN[name], cwd=tmp_path)
    told = (done.stdout + done.stderr).decode()
    assert done.returncode == 2, told[:500]
    assert max(map(len, told.splitlines())) <= MOST_MESSAGE
    assert len(told) <= 2 * MOST_MESSAGE


def test_a_line_names_both_ends_of_what_is_too_long(capsys: pytest.CaptureFixture[str]) -> None:
    complain(f"--output /{'a' * 10_000_000}/out.json: there is no directory")
    told = capsys.readouterr().err
    assert MOST_MESSAGE - 20 < len(told) <= MOST_MESSAGE + 1
    assert told.startswith("wirewitness: --output /aaa")
    assert told.endswith("aaa/out.json: there is no directory\n")
    assert re.search(r" … \(9,99\d,\d{3} characters left out\) … ", told)


def test_what_differ_says_quotes_a_part_of_the_condition() -> None:
    done = run("differ", SAMPLE, "--where", f"client_id <> '{LONG}'")
    assert done.returncode == 0
    assert len(done.stdout) < 20_000
    assert b"characters left out" in b" ".join(done.stdout.split())


def test_a_value_in_a_page_has_a_limit() -> None:
    pytest.importorskip("streamlit")
    from wirewitness.app.dashboard.text import MOST, html

    shown = html("<p>{value}</p>", value="<" * 1_000_000)
    assert isinstance(shown, Markup)
    assert shown.count("&lt;") < MOST
    assert "characters left out" in shown


def test_the_documentation_states_the_limits() -> None:
    text = (ROOT / "docs" / "limits.md").read_text()
    for number in (MOST_ROWS, MOST_BYTES, MOST_ASKED, MOST_MESSAGE, MOST_QUOTED, 10_000, MOST_NESTED):
        assert f"{number:,}" in text
