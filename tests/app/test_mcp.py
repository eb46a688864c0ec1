"""`wirewitness mcp` asked by a real client of the protocol, and the bounds of its answers."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

import wirewitness
from tests.app.program import COMMAND, environment, run
from tests.conftest import SAMPLES
from wirewitness.analyser.base.memory_room import room_for
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.app.cli.mcp_server import answers
from wirewitness.app.cli.mcp_server.answers import Answers, NoAnswer
from wirewitness.app.cli.mcp_server.short_ids import MOST_ID
from wirewitness.app.shared.times import unix_ns

SAMPLE = SAMPLES / "kafka_fenced_commit.pcapng"
Asked = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def told() -> Iterator[Answers]:
    def no_index() -> Any:
        raise AssertionError("nobody asks for a message here")

    with wirewitness.read(SAMPLE, tables=list(TABLES)) as analysis:
        yield Answers(analysis, no_index, unix_ns)


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_client_asks_over_standard_input() -> None:
    """All tools, in one session of the official client with the program."""
    from mcp import Client, StdioServerParameters  # takes a second of each process that collects this

    async def session() -> dict[str, Any]:
        words = [*COMMAND[1:], "mcp", str(SAMPLE)]
        program = StdioServerParameters(command=COMMAND[0], args=words, env=environment(), cwd=os.getcwd())
        async with Client(program) as client:
            tools = await client.list_tools()
            found: dict[str, Any] = {"tools": {tool.name: tool for tool in tools.tools}}
            first = await client.call_tool("findings", {"limit": 1})
            [row] = lines(first.content[0].text)[:1]
            [evidence, *_] = (await client.call_tool("finding", {"finding_id": row["finding_id"]})).content
            where = lines(evidence.text)[0]["evidence"]
            message_id = (json.loads(where) if isinstance(where, str) else where)[0]["message_id"]
            asked = {
                "overview": {}, "rule": {"code": row["code"]}, "tables": {}, "columns": {"table": "flows"},
                "query": {"sql": "select count(*) as n from exchanges"}, "groups": {"group": "payments-ledger"},
                "message": {"message_id": message_id}, "why": {"subject": row["finding_id"]}, "stands_out": {},
                "compare": {"first": "/2027-01-01", "second": "/2027-01-01"}, "differ": {"where": "status = 'error'"},
                "expect": {"contract": "kafka-consumer", "about": {"group": "payments-ledger"}},
            }  # fmt: skip
            for name, given in asked.items():
                found[name] = (await client.call_tool(name, given)).content[0].text
            wrong = await client.call_tool("query", {"sql": "select * from read_csv('/etc/passwd')"})
            return {**found, "first": row, "wrong": (wrong.is_error, wrong.content[0].text)}

    found = asyncio.run(session())
    assert set(found["tools"]) == {
        "overview", "findings", "finding", "rule", "tables", "columns", "query", "groups", "message",
        "why", "stands_out", "compare", "differ", "expect",
    }  # fmt: skip
    assert all(tool.annotations.read_only_hint and tool.description for tool in found["tools"].values())
    assert found["first"]["code"] == "KAF105"
    assert "Finds" in found["rule"]
    assert '"protocol":"kafka"' in found["overview"]
    assert lines(found["query"]) == [{"n": 456}]
    assert {row["group_id"] for row in lines(found["groups"])} == {"payments-ledger"}
    assert "OffsetCommit" in found["message"]
    assert "with ILLEGAL_GENERATION" in " ".join(found["why"].split())
    assert "The consumer started here; the capture cannot show why" in found["why"]
    assert '"column": "flow_id"' in found["columns"]
    assert "No difference" in found["compare"]
    assert "Compared and found alike: " in found["compare"]
    assert "error ILLEGAL_GENERATION" in found["differ"]
    assert "FAILED     commits are accepted" in found["expect"]
    assert found["wrong"][0]
    assert "root:" not in found["wrong"][1]


def test_answers_end_after_so_many_rows_and_say_so(told: Answers) -> None:
    found = lines(told.query("select * from range(5000)", 7))
    assert len(found) == 8
    assert found[-1] == {"more": True, "shown": 7, "hint": "narrow the question, or count"}
    assert len(lines(told.query("select * from range(5000)", 10**9))) == answers.MOST_ROWS + 1
    assert lines(told.query("select * from range(7)", 7))[-1] == {"range": 6}


def test_answers_end_after_so_many_characters(told: Answers) -> None:
    text = told.query("select repeat('x', 1000) as x from range(500)", 1000)
    assert len(text) < answers.MOST_BYTES + 200
    assert lines(text)[-1]["more"]


@pytest.mark.parametrize("text", ["repeat('x', 3000000000)", "repeat(repeat('x', 1000000), 4000)"])
def test_a_query_that_takes_gigabytes_is_given_up(told: Answers, text: str) -> None:
    limits = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(NoAnswer, match=r"(?i)memory"):
        told.query(f"select length({text})")
    assert resource.getrlimit(resource.RLIMIT_AS) == limits
    assert "41" in told.query("select 41 as n")


def test_room_is_there_until_the_last_of_several_leaves() -> None:
    limits = resource.getrlimit(resource.RLIMIT_AS)
    with room_for(1 << 30):
        inner = resource.getrlimit(resource.RLIMIT_AS)
        with room_for(1 << 40):
            assert resource.getrlimit(resource.RLIMIT_AS) == inner != limits
        assert resource.getrlimit(resource.RLIMIT_AS) == inner
        with pytest.raises(MemoryError):
            bytearray(1 << 31)
    assert resource.getrlimit(resource.RLIMIT_AS) == limits


def test_a_query_without_an_end_is_given_up(told: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_SECONDS", 1.0)
    began = time.monotonic()
    with pytest.raises(NoAnswer, match="given up after 1 s without an answer; ask for fewer rows: "):
        told.query("select count(*) from range(10000000) a, range(10000000) b where a.range * b.range % 7 = 3")
    assert time.monotonic() - began < 60
    assert lines(told.query("select 1 as one")) == [{"one": 1}]


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda told: told.columns("nope"), "there is no table nope"),
        (lambda told: told.query("drop table exchanges"), "syntax error"),
        (lambda told: told.query("copy exchanges to '/tmp/x.csv'"), "syntax error"),
        (lambda told: told.finding("nope"), "there is no finding nope"),
        (lambda told: told.rule("XXX999"), "there is no rule XXX999"),
        (lambda told: told.groups(at="yesterday"), "yesterday"),
        (lambda told: told.findings("' or 1=1 --", 5), "severity must be one of info, warning, critical"),
        (lambda told: told.compare(), "give `at`, or both `first` and `second`"),
        (lambda told: told.compare(first="2026-11-20/", second="later"), "write FROM/TO"),
        (lambda told: told.differ("latencyms > 3"), "latencyms"),
        (lambda told: told.query("(" * 1000 + "1" + ")" * 1000), "the SQL has 1,001 brackets within each other"),
        (lambda told: told.query(f"select client_id{'.a' * 1000} from exchanges"), "the SQL has 1,001 names"),
        (lambda told: told.differ("(" * 1000), "the SQL has 1,00. brackets within each other"),
        (lambda told: told.expect("kafka-consumers"), "did you mean kafka-consumer"),
        (lambda told: told.expect("kafka-consumer", {"grup": "x"}), "did you mean group"),
    ],
    ids=[
        "table",
        "drop",
        "copy",
        "finding",
        "rule",
        "time",
        "quotes",
        "compare",
        "times",
        "where",
        "brackets of a query",
        "names of a query",
        "brackets of a condition",
        "contract",
        "about",
    ],
)
def test_what_has_no_answer_says_why(ask: Callable[[Answers], str], said: str, told: Answers) -> None:
    with pytest.raises(NoAnswer, match=said):
        ask(told)


def test_an_empty_answer_is_a_sentence(told: Answers) -> None:
    assert (
        told.query("select * from exchanges where operation = 'find'") == "No row: nothing in the capture is like that."
    )
    assert told.groups("no-such-group") == "No group is called no-such-group then."
    none = told.findings("critical")
    assert none.startswith("No finding of severity critical: ") or lines(none)
    assert "there is nothing to compare" in told.differ("latency_ms > 1e9")
    assert told.expect().splitlines()[0].startswith("kafka-consumer: ") or "kafka-consumer: " in told.expect()


def test_payload_is_shown_on_request_only() -> None:
    path = SAMPLES / "kafka_healthy.pcapng"
    shown = {}
    for payload in (False, True):
        options = replace(wirewitness.ReadOptions(), payload=payload)
        with wirewitness.read(path, tables=["kafka_records"], options=options) as analysis:
            one = Answers(analysis, lambda: None, unix_ns, payload)  # type: ignore[arg-type, return-value]
            shown[payload] = lines(one.query("select count(key) as keys from kafka_records"))[0]["keys"]
    assert shown[False] == 0
    assert shown[True] > 0


def test_standard_input_is_no_capture() -> None:
    done = run("mcp", "-")
    assert done.returncode == 2
    assert "standard input has the questions here" in done.stderr.decode()


def test_why_answers_with_rows_and_refuses_what_is_not_there(told: Answers) -> None:
    found = " ".join(told.why("payments 4").split())
    assert "kafka_offset_commits: exchange_id = " in found
    with pytest.raises(NoAnswer, match="near it: payments-"):
        told.why("paymnts 4")
    with pytest.raises(NoAnswer):
        told.why("payments 4", "no time")


def test_no_answer_repeats_a_long_id() -> None:
    """What has one is passed over; what follows is answered."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    long_ids = ["i" * 1_000_000, "i" * (MOST_ID + 1), 10 ** (MOST_ID + 1), -(10 ** (MOST_ID + 1))]
    asked = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *({"jsonrpc": "2.0", "id": one, "method": "ping"} for one in [*long_ids, "i" * MOST_ID, 7]),
    ]
    program = subprocess.Popen(
        [*COMMAND, "mcp", "--quiet", str(SAMPLE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    )
    assert program.stdin is not None
    assert program.stdout is not None
    with program, program.stdin as questions:
        questions.write("".join(json.dumps(one) + "\n" for one in asked).encode())
        questions.flush()
        told = [json.loads(program.stdout.readline()) for _ in range(3)]  # the end of questions would come first
    assert {one["id"] for one in told} == {0, "i" * MOST_ID, 7}
    assert program.returncode == 0
