"""What the flow view and the message inspector are told, and that their scripts show it as text only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import wirewitness
from tests.conftest import ROOT
from wirewitness.analyser.analysis.evidence.index import Index, open_index
from wirewitness.analyser.analysis.evidence.rows import parse_message_id
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import open_captures
from wirewitness.app.dashboard.components import inspector, ladder
from wirewitness.reports.base.formats.message_view import view_message

SAMPLES = ROOT / "sample_pcaps"
SCRIPTS = sorted(Path(ladder.__file__).parent.glob("*.js"))
LINES = 40


@pytest.fixture(scope="module")
def sasl() -> Iterator[tuple[wirewitness.Analysis, Index]]:
    path = str(SAMPLES / "kafka_sasl.pcapng")
    wanted = ("flows", "messages", "exchanges", "expert_infos")
    with (
        wirewitness.read(path, tables=wanted) as analysis,
        open_index(open_captures([path]), ReadOptions(), use_cache=False) as index,
    ):
        yield analysis, index


def flow_of(analysis: wirewitness.Analysis, condition: str) -> str:
    found = analysis.sql(f"SELECT flow_id FROM exchanges WHERE {condition} ORDER BY ts LIMIT 1").to_pylist()
    return str(found[0]["flow_id"])


def test_every_message_of_a_flow_is_a_line_in_time_order(sasl: tuple[wirewitness.Analysis, Index]) -> None:
    analysis, _ = sasl
    flow = flow_of(analysis, "operation = 'SaslAuthenticate'")
    wanted = analysis.sql(f"SELECT message_id FROM messages WHERE flow_id = '{flow}'").column(0).to_pylist()
    lines = ladder.ladder_lines(analysis, flow, 0, len(wanted), None)
    messages = [line for line in lines if line["kind"] == "message"]
    assert sorted(line["id"] for line in messages) == sorted(wanted)
    assert [line["time"] for line in lines] == sorted(line["time"] for line in lines)


def test_pages_of_the_ladder_follow_each_other(sasl: tuple[wirewitness.Analysis, Index]) -> None:
    analysis, _ = sasl
    flow = flow_of(analysis, "operation = 'SaslAuthenticate'")

    def ids(offset: int, limit: int) -> list[str]:
        lines = ladder.ladder_lines(analysis, flow, offset, limit, None)
        return [line["id"] for line in lines if line["kind"] == "message"]

    assert ids(0, 3) + ids(3, 4) == ids(0, 7)
    assert ids(100_000, 5) == []


def test_a_refused_login_is_an_error_in_the_ladder(sasl: tuple[wirewitness.Analysis, Index]) -> None:
    analysis, _ = sasl
    flow = flow_of(analysis, "operation = 'SaslAuthenticate' AND error_code = 58")
    failed = [line for line in ladder.ladder_lines(analysis, flow, 0, LINES, None) if line.get("tone") == "error"]
    assert any("error 58 SASL_AUTHENTICATION_FAILED" in line["label"] for line in failed)


def test_the_chosen_message_is_marked(sasl: tuple[wirewitness.Analysis, Index]) -> None:
    analysis, _ = sasl
    flow = flow_of(analysis, "operation = 'SaslAuthenticate'")
    second = ladder.ladder_lines(analysis, flow, 0, 2, None)[1]["id"]
    chosen = [line["id"] for line in ladder.ladder_lines(analysis, flow, 0, LINES, second) if line.get("chosen")]
    assert chosen == [second]


def test_fields_cover_the_bytes_and_credentials_stay_hidden(sasl: tuple[wirewitness.Analysis, Index]) -> None:
    analysis, index = sasl
    logins = analysis.sql(
        "SELECT request_message_id FROM exchanges WHERE operation = 'SaslAuthenticate' AND status <> 'orphan'"
    )
    for message_id in logins.column(0).to_pylist():
        view = view_message(index, index.message(parse_message_id(message_id)), payload=False)
        told = inspector.message_data(view, "wirewitness show a.pcap ID")
        assert len(told["hex"]) == len(told["letters"]) == told["total"]
        covered = {at for _, _, _, start, end, _ in told["fields"] for at in range(start, end)}
        assert covered == set(range(told["total"]))
        assert "**" in told["hex"]
        assert any("credentials" in note for note in told["notes"])
        text = json.dumps(told)
        assert not any(secret in text for secret in ("lab-plain-7Qx2", "lab-wrong-3Vb8"))


def test_long_messages_are_cut_and_say_so(
    sasl: tuple[wirewitness.Analysis, Index], monkeypatch: pytest.MonkeyPatch
) -> None:
    analysis, index = sasl
    longest = analysis.sql("SELECT message_id FROM messages ORDER BY length_bytes DESC LIMIT 1").to_pylist()[0]
    view = view_message(index, index.message(parse_message_id(longest["message_id"])), payload=False)
    monkeypatch.setattr(inspector, "MAX_FIELDS", 5)
    monkeypatch.setattr(inspector, "MAX_BYTES", 16)
    told = inspector.message_data(view, "wirewitness show a.pcap ID")
    assert (len(told["fields"]), len(told["hex"])) == (5, 16)
    assert told["total"] == len(view.content.data) > 16
    assert "Only the first 5 fields are shown." in told["notes"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_never_make_markup_of_values(script: Path) -> None:
    text = script.read_text("utf-8")
    assert "textContent" in text
    assert not any(word in text for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("))
