"""What a command does not need is not imported: most of the time that a small capture takes goes into imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import wirewitness
from tests.app.program import environment, run
from tests.conftest import SAMPLES
from tests.support.packets import pcap
from tests.support.tls_twin import TLS_13, Sides, twin
from tests.support.wire import packets_of
from wirewitness.app.cli.commands import COMMANDS, command
from wirewitness.dissectors.registry import PROTOCOLS

# What Arrow imports for its own functions of columns, files and queries: together a sixth of a small table.
ARROW = ("pyarrow.compute", "pyarrow.acero", "pyarrow.dataset", "pyarrow.fs", "pyarrow.parquet")
PLACE = "wirewitness.analyser.archive.dataset.place"

PROGRAM = """
import sys
from wirewitness.app.cli.main import cli
try: cli(sys.argv[1:])
except SystemExit as end: assert not end.code, end.code
print(*sys.modules, file=sys.stderr)
"""


def loaded(*words: str) -> set[str]:
    """Modules that a process has imported when this command is done."""
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, env=environment(), check=True
    )
    return {*said.stderr.splitlines()[-1].split()}


def rooms(modules: set[str], *names: str) -> list[str]:
    """Those of these modules and packages that are there, and what is in them."""
    return sorted(
        module for module in modules if module.startswith(tuple(f"{name}." for name in names)) or module in names
    )


def test_the_list_of_commands_imports_none_of_them() -> None:
    there = loaded("--help")
    assert rooms(there, "numpy", "pyarrow", "pandas", "duckdb", "rich") == []
    assert rooms(there, "wirewitness.dissectors", "wirewitness.analyser", "wirewitness.reports") == []
    assert rooms(there, *(f"wirewitness.app.cli.{module}" for module, _ in COMMANDS.values())) == []


@pytest.mark.parametrize(
    ("sample", "spoken"),
    [("mqtt_enhanced_auth", "mqtt"), ("mongo_show_databases", "mongo"), ("kafka_fenced_commit", "kafka")],
    ids=["mqtt", "mongo", "kafka"],
)
def test_a_table_imports_the_decoder_of_the_protocol_that_is_spoken(sample: str, spoken: str) -> None:
    there = loaded("table", "exchanges", str(SAMPLES / f"{sample}.pcapng"))
    decoders = {f"wirewitness.dissectors.{protocol}.decoder" for protocol in PROTOCOLS}
    assert decoders & there == {f"wirewitness.dissectors.{spoken}.decoder"}
    assert rooms(there, *ARROW) == []
    assert rooms(there, "duckdb", "pandas", "rich", "crc32c", "wirewitness.analyser.analysis.all_rules", "http") == []
    assert rooms(there, "wirewitness.analyser.archive") == [
        "wirewitness.analyser.archive",
        "wirewitness.analyser.archive.dataset",
        PLACE,
    ]


@pytest.mark.parametrize(
    "sample",
    [
        "kafka_fenced_commit",
        pytest.param("mqtt_takeover_loop", marks=pytest.mark.exhaustive),
        pytest.param("mongo_shapes_and_errors", marks=pytest.mark.exhaustive),
    ],
)
def test_rules_do_not_import_pandas(sample: str) -> None:
    there = loaded("table", "findings", str(SAMPLES / f"{sample}.pcapng"))
    assert rooms(there, "pandas") == []
    assert rooms(there, "wirewitness.analyser.kafka.rules")


def test_the_report_does_not_import_pandas() -> None:
    there = loaded("analyse", str(SAMPLES / "kafka_stale_commit.pcapng"))
    assert rooms(there, "pandas") == []
    assert rooms(there, "wirewitness.reports.protocols.kafka.sections.section")


@pytest.mark.parametrize("table", ["messages", "expert_infos", "flows"])
@pytest.mark.parametrize("form", ["table", "jsonl"])
def test_other_tables_and_forms_need_no_more_of_arrow(table: str, form: str) -> None:
    assert rooms(loaded("table", table, str(SAMPLES / "mqtt_takeover_loop.pcapng"), "--format", form), *ARROW) == []


_TIMES = """
import sys
from wirewitness.analyser.decoding.run.pandas_later import import_pandas_later
import_pandas_later()
import wirewitness
from wirewitness.reports.base.questions.source import all_rows
assert "pandas" not in sys.modules
with wirewitness.read(sys.argv[1], tables=["flows"]) as analysis:
    found = all_rows(analysis, "select min(ts_first) as first, epoch_ns(min(ts_first)) as ns from flows")
assert found[0]["first"].value == found[0]["ns"], found
"""


def test_rows_with_times_of_nanoseconds_have_them_where_pandas_comes_later() -> None:
    sample = str(SAMPLES / "kafka_fenced_commit.pcapng")
    subprocess.run([sys.executable, "-c", _TIMES, sample], check=True)


def test_a_message_of_a_capture_that_was_seen_before_needs_no_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    sample = SAMPLES / "mongo_show_databases.pcapng"
    with wirewitness.read(sample, tables=["messages"]) as analysis:
        wanted = analysis.arrow("messages", ["message_id"], limit=1).column(0)[0].as_py()
    assert run("show", sample, wanted).returncode == 0
    there = loaded("show", str(sample), wanted)
    decoders = {f"wirewitness.dissectors.{protocol}.decoder" for protocol in PROTOCOLS}
    assert decoders & there == set()
    tables = tuple(f"wirewitness.analyser.{name}" for name in ("engine", "analysis.all_rules", "analysis.analysis"))
    assert rooms(there, "duckdb", "pandas", "rich", *tables) == []
    assert rooms(there, "pyarrow.compute", "pyarrow.acero", "pyarrow.dataset") == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_where_it_is_said_to_be(name: str) -> None:
    assert command(name).name == name


def test_what_decrypts_is_imported_when_there_is_a_key_for_a_connection(tmp_path: Path) -> None:
    sides = Sides(TLS_13)
    capture, keylog = tmp_path / "tls.pcap", tmp_path / "keys.log"
    capture.write_bytes(pcap(twin(packets_of(SAMPLES / "mongo_show_databases.pcapng"), sides)[0]))
    keylog.write_bytes(sides.keylog)
    clear = loaded("table", "exchanges", str(SAMPLES / "mongo_show_databases.pcapng"))
    watched = ("cryptography", "wirewitness.analyser.decoding.run.keys", "wirewitness.dissectors.carriers.tls")
    assert rooms(clear, *watched) == [
        "wirewitness.dissectors.carriers.tls", "wirewitness.dissectors.carriers.tls.alerts",
        "wirewitness.dissectors.carriers.tls.carrier",
        "wirewitness.dissectors.carriers.tls.hello",
    ]  # fmt: skip
    without = loaded("table", "exchanges", str(capture))
    assert rooms(without, "cryptography") == []
    assert "wirewitness.dissectors.carriers.tls.unwrapping" in without
    assert rooms(loaded("table", "exchanges", str(capture), "--keylog", str(keylog)), "cryptography")
