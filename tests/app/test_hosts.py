"""--hosts on the command line: names where clients are named, and one line for a file that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.conftest import SAMPLES
from wirewitness.app.cli.main import cli

SAMPLE = SAMPLES / "kafka_stale_commit.pcapng"
CLIENT = "10.77.0.12"


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture
def pods(tmp_path: Path) -> Path:
    pod = {
        "kind": "Pod",
        "metadata": {"name": "ledger-a-0", "namespace": "shop"},
        "spec": {"nodeName": "node-1"},
        "status": {"phase": "Running", "podIP": CLIENT, "hostIP": "192.168.0.4"},
    }
    path = tmp_path / "pods.json"
    path.write_text(json.dumps({"kind": "List", "items": [pod]}))
    return path


def test_report_names_pods(pods: Path) -> None:
    shown = invoke("analyse", SAMPLE, "--hosts", pods)
    assert shown.exit_code == 0
    text = " ".join(shown.stdout.split())
    assert f"Client ledger-a at {CLIENT} (pod ledger-a-0)" in text
    assert "OWNER pod ledger-a-0" in text
    assert shown.stderr == ""
    clients = invoke("clients", SAMPLE, "--hosts", pods, "--format", "jsonl").stdout.splitlines()
    owners = {row["client_id"]: row["client_owner"] for row in map(json.loads, clients)}
    assert owners["ledger-a"] == "pod ledger-a-0"
    assert owners["ledger-b"] is None
    members = invoke("groups", SAMPLE, "--members", "--hosts", pods, "--format", "jsonl").stdout.splitlines()
    owners = {row["client_id"]: row["client_owner"] for row in map(json.loads, members)}
    assert (owners["ledger-a"], owners["ledger-b"]) == ("pod ledger-a-0", None)


def test_report_without_names_has_no_column_for_them() -> None:
    assert "OWNER" not in invoke("analyse", SAMPLE).stdout


def test_findings_have_the_same_ids(pods: Path) -> None:
    told = [
        [json.loads(line) for line in invoke("findings", SAMPLE, *more, "--format", "jsonl").stdout.splitlines()]
        for more in ((), ("--hosts", pods))
    ]
    assert [one["finding_id"] for one in told[0]] == [one["finding_id"] for one in told[1]]
    assert [one["sentence"] for one in told[0]] != [one["sentence"] for one in told[1]]


def test_show_names_both_ends(pods: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    where = ("--where", f"client_address = '{CLIENT}'", "--limit", "1", "--format", "jsonl")
    row = json.loads(invoke("table", "exchanges", SAMPLE, *where).stdout)
    servers = tmp_path / "servers"
    servers.write_text(f"{row['server_address']} kafka-0\n")
    shown = invoke("show", SAMPLE, row["exchange_id"], "--hosts", pods, "--hosts", servers)
    assert "  client   pod ledger-a-0\n  server   host kafka-0\n" in shown.stdout
    plain = invoke("show", SAMPLE, row["exchange_id"])
    assert "  client " not in plain.stdout


WRONG = {
    "no such file": (None, "no such file"),
    "something else": ("hello\n", "does not name addresses (no line is an address with a name)"),
    "another kind": ('{"kind": "Secret"}', "JSON of kind Secret and not of pods"),
}


@pytest.mark.parametrize(("text", "told"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("command", [("analyse",), ("table", "flows"), ("show",)], ids=lambda words: words[0])
def test_file_that_cannot_be_used_ends_the_command(
    tmp_path: Path, command: tuple[str, ...], text: str | None, told: str
) -> None:
    path = tmp_path / "names"
    if text is not None:
        path.write_text(text)
    shown = invoke(*command, SAMPLE, *(["--packet", "5651"] if command == ("show",) else []), "--hosts", path)
    assert shown.exit_code == 2
    assert shown.stdout == ""
    assert len(shown.stderr.splitlines()) == 1
    assert told in shown.stderr


def test_file_of_another_cluster_is_said(tmp_path: Path) -> None:
    path = tmp_path / "names"
    path.write_text("172.31.0.1 elsewhere\n")
    shown = invoke("table", "flows", SAMPLE, "--hosts", path, "--limit", "1")
    assert shown.exit_code == 0
    assert "has 1 address, none of them in the capture: is it of another cluster or network?" in shown.stderr
