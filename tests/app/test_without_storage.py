"""Addresses in stores without the packages that they need: each command says in one line what to install, or that this
file has to be on this machine; no traceback, and nothing is begun."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.app.program import environment
from tests.conftest import ROOT, SAMPLES
from wirewitness.app.cli.commands import COMMANDS, command
from wirewitness.app.shared.local_files import ELSEWHERE

Answers: TypeAlias = Callable[[list[list[str]], str], list[tuple[list[str], int, str, str]]]
SAMPLE = str(SAMPLES / "mqtt_takeover_loop.pcapng")
# What a command wants beside the parameter that is tried.
BESIDE: dict[str, list[str]] = {
    "expect": ["kafka-consumer"], "why": ["payments", "4"], "show": ["m1"], "query": ["select 1"],
    "table": ["exchanges"], "extract": ["--finding", "f1"], "differ": ["--where", "latency_ms > 5"],
    "otel": ["--endpoint", "http://127.0.0.1:9"],
}  # fmt: skip
AHEAD = {"table", "expect"}  # their first word is not the capture
READ = ("CAPTURE", "INPUT")  # what may be in a store, by the words for it in help texts
LOCAL = ("FILE", "FOLDER")
NO_FILE = ("[FILE:]N",)  # a packet of one
SCHEMES = {"s3": "storage", "s3a": "storage", "gs": "storage", "abfss": "storage", "hdfs": "hdfs"}

# One process for all commands: packages that cannot be imported are out of reach for all of them.
WITHOUT = """
import json, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

MISSING = set(sys.argv[1].split(","))
sys.meta_path.insert(0, Missing())
from tests.app.program import run
for line in sys.stdin:
    done = run(*json.loads(line))
    print(json.dumps([done.returncode, done.stdout.decode(), done.stderr.decode()]), flush=True)
"""


@pytest.fixture
def answers(tmp_path: Path) -> Answers:
    """Asks commands without these modules: the words, status, output and errors of each."""
    return partial(_answers, tmp_path)


def _answers(folder: Path, lines: list[list[str]], missing: str) -> list[tuple[list[str], int, str, str]]:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, missing], input="\n".join(map(json.dumps, lines)), capture_output=True,
        text=True, env=environment(PYTHONPATH=f"{ROOT}:{ROOT / 'src'}"), check=True, cwd=folder,
    )  # fmt: skip
    return [(words, *json.loads(line)) for words, line in zip(lines, done.stdout.splitlines(), strict=True)]


def parameters() -> Iterator[tuple[str, str, str]]:
    """Command, option (empty for an argument) and metavar of all that take a file, capture or dataset."""
    for name in COMMANDS:
        for one in command(name).params:
            about = one.make_metavar(None) if one.metavar is None else one.metavar  # type: ignore[arg-type]
            if about not in NO_FILE and any(word in about for word in (*READ, *LOCAL, "RULES", "DATASET")):
                yield name, one.opts[0] if one.opts[0].startswith("-") else "", about


def words(name: str, option: str, about: str, address: str) -> list[str]:
    beside = BESIDE.get(name, [])
    if about == "RULES":
        return [name, address, SAMPLE]
    if option == "--pack":
        return [name, option, address]
    capture = address if not option else SAMPLE
    ahead, behind = (beside, []) if name in AHEAD else ([], beside)
    if name == "live":
        with_it: dict[str, list[str]] = {"-r": [], "--write": ["-i", "lo"]}
        return [name, option, address, *with_it.get(option, ["-r", "-"])]
    if name == "otel" and option == "--output":
        behind = []
    if name == "extract" and option != "--output":
        behind = [*behind, "--output", "evidence.pcapng"]
    if name == "archive" and option != "--output":
        behind = ["--output", "/nonexistent/traffic"]
    if name == "compare":
        behind = [SAMPLE]
    return [name, *ahead, capture, *behind, *([option, address] if option else [])]


def extra_of(scheme: str) -> str:
    return f"python -m pip install -e '.[{SCHEMES[scheme]}]'"


CASES = sorted(set(parameters()))


@pytest.mark.parametrize("scheme", ["s3", "hdfs"])
def test_every_command_says_in_one_line_what_is_missing(scheme: str, answers: Answers) -> None:
    address = f"{scheme}://bucket/a.pcapng"
    wrong = []
    lines = [words(*case, address) for case in CASES]
    for case, (given, status, output, errors) in zip(CASES, answers(lines, "obstore,fsspec,hdfs_native"), strict=True):
        name, option, about = case
        is_read = any(word in about for word in READ) or (name, option) == ("archive", "--output")
        said = extra_of(scheme) if is_read else ELSEWHERE
        one_line = errors.count("\n") == 1 and errors.startswith("wirewitness: ")
        if (status, output, one_line) != (2, "", True) or said not in errors.replace("python3", "python"):
            wrong.append((" ".join(given), status, output[:200], errors[:500]))
        elif f"{address}: " not in errors:
            wrong.append((" ".join(given), status, "", errors))
    assert wrong == []
    assert {case[0] for case in CASES} >= {"analyse", "archive", "dashboard", "live", "mcp", "expect", "show"}


@pytest.mark.parametrize(
    ("missing", "schemes"),
    [
        ("obstore", ["s3", "s3a", "gs", "abfss"]),
        ("hdfs_native", ["hdfs"]),
        ("fsspec", [*SCHEMES]),
    ],
)
def test_each_scheme_names_its_extra_whichever_package_is_missing(
    missing: str, schemes: list[str], answers: Answers
) -> None:
    told = answers([["analyse", f"{scheme}://bucket@account/traffic"] for scheme in schemes], missing)
    for scheme, (_, status, _, errors) in zip(schemes, told, strict=True):
        assert (status, errors.count("\n")) == (2, 1)
        assert extra_of(scheme) in errors


def test_the_extras_have_the_packages_that_are_looked_for() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert [name.partition(">")[0] for name in extras["storage"]] == ["obstore", "fsspec"]
    assert [name.partition(">")[0] for name in extras["hdfs"]] == ["wirewitness[storage]", "hdfs-native"]


def test_what_is_on_this_machine_is_read_beside_an_address_that_cannot_be(answers: Answers) -> None:
    ((_, status, output, errors),) = answers([["analyse", SAMPLE, "s3://bucket/a.pcapng"]], "obstore")
    assert status == 3
    assert "MQT102" in output
    assert "cannot read s3://bucket/a.pcapng: object stores need more packages" in errors


def test_a_file_of_this_machine_needs_none_of_them(tmp_path: Path, answers: Answers) -> None:
    target = tmp_path / "out.json"
    ((_, status, _, errors),) = answers(
        [["analyse", f"file://{SAMPLE}", "--format", "json", "-o", str(target)]], "obstore,fsspec,hdfs_native"
    )
    assert (status, errors, target.is_file()) == (0, "", True)
