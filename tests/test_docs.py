"""The pages show the code and the output as they are."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from textwrap import indent

import pytest

from tests.analyser.decoding.run.test_limits import REACHED, SILENT
from tests.app.program import run
from tests.conftest import ROOT
from tests.support.example_capture import write_capture
from tests.support.shares import pairs
from wirewitness.dissectors.core.limits import CaptureLimits, Limits
from wirewitness.reports.report.tshark.limits import LIMITS

PAGE = (ROOT / "docs" / "adding-a-protocol.md").read_text()
# Files that are only on the page are the business of test_adding_a_protocol.py.
EXCERPTS = re.findall(r"^```python\n(?!# new: )(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)
LIMIT_ROWS = re.findall(
    r"^\| `([a-z_.]+)` \| ([^|]+?) \| (.*?) ?\|", (ROOT / "docs" / "limits.md").read_text(), re.MULTILINE
)
RUNS = re.findall(r"^```console\n\$ (.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("excerpt", EXCERPTS, ids=lambda text: text.split("\n")[1].strip()[:40])
def test_excerpts_are_the_code(excerpt: str) -> None:
    head, _, code = excerpt.partition("\n")
    source = (ROOT / head.removeprefix("# ")).read_text()
    # Methods stand at the margin in an excerpt.
    assert code in source or indent(code, "    ") in source


@pytest.mark.parametrize("shown", RUNS, ids=lambda text: text.split()[1])
def test_output_is_what_the_program_prints(shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_capture(tmp_path / "calls.pcap")
    command, _, output = shown.partition("\n")
    result = run(*command.split()[1:], cwd=tmp_path)
    assert result.stdout.decode().strip("\n") == output


def test_there_are_excerpts_and_runs() -> None:
    assert (len(EXCERPTS), len(RUNS)) == (13, 3)


def written(name: str, value: int) -> str:
    """A default as the page writes it."""
    unit = next((end for end in ("bytes", "ms", "s") if name.endswith(f"_{end}")), "")
    if unit == "bytes":
        return f"{value >> 20} MiB" if value % (1 << 20) == 0 else f"{value >> 10} KiB"
    return f"{value:,} {unit}".strip() if unit in ("ms", "s") else f"{value:,}"


def test_the_page_of_limits_has_every_limit_and_its_default() -> None:
    defaults = {f"capture.{field.name}": field.default for field in fields(CaptureLimits)}
    defaults |= {field.name: field.default for field in fields(Limits) if field.init and field.name != "capture"}
    expected = {name: written(name, value) for name, value in defaults.items() if isinstance(value, int)}
    assert {name: default for name, default, _ in LIMIT_ROWS} == expected
    assert len(LIMIT_ROWS) == len(expected) == len(defaults)


@pytest.mark.parametrize(("name", "shown"), [(name, shown) for name, _, shown in LIMIT_ROWS])
def test_the_page_of_limits_names_the_expert_infos(name: str, shown: str) -> None:
    codes = {reached.code for case, reached in REACHED.items() if case.partition(" ")[0] == name}
    assert codes <= set(re.findall(r"`(\w+)`", shown))
    assert bool(shown) == (name not in SILENT)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([a-z_]+/[a-z_/]+(?:\.py)?)`", PAGE))))
def test_named_files_exist(name: str) -> None:
    assert (ROOT / name).exists()


CROSSCHECK = (ROOT / "docs" / "crosscheck.md").read_text()
[(CHECKED, _, CHECK_OUTPUT)] = [
    shown.partition("\n") for shown in re.findall(r"^```console\n\$ (.*?)\n```$", CROSSCHECK, re.MULTILINE | re.DOTALL)
]


def test_the_crosscheck_is_what_the_program_prints(tshark: str) -> None:
    result = run(*CHECKED.split()[1:], cwd=ROOT, COLUMNS="100")
    own = re.compile(r"(?<=compared with tshark )[\d.]+\d")
    assert own.sub("", result.stdout.decode().strip("\n"), 1) == own.sub("", CHECK_OUTPUT, 1)


def test_all_reasons_of_the_crosscheck_are_listed() -> None:
    rows = [row.split(" | ") for row in re.findall(r"^\| (`\w+` .*) \|$", CROSSCHECK, re.MULTILINE)]
    assert rows == [
        [f"`{limit.code}`", limit.protocol or "all", limit.whose, limit.text, limit.seen, limit.source]
        for limit in LIMITS
    ]


WHY = (ROOT / "docs" / "why.md").read_text()
WHY_RUNS = re.findall(r"^    \$ wirewitness (.*?)\n((?:    .*\n|\n)+)", WHY, re.MULTILINE)


@pytest.mark.parametrize(
    ("command", "shown"), pairs(WHY_RUNS, [run for run in WHY_RUNS if "mongo" in run[0]]), ids=lambda text: text[:40]
)
def test_chains_on_the_page_are_what_the_program_prints(
    command: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    printed = run(*command.split(), cwd=ROOT).stdout.decode()
    assert "".join(line.removeprefix("    ") for line in shown.splitlines(keepends=True)).strip() == printed.strip()


def test_the_page_of_chains_shows_some() -> None:
    assert WHY_RUNS
