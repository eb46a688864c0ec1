"""The pages on how to capture: what they say to type exists, and is understood."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest

from tests.app.test_commands import invoke
from tests.conftest import ROOT, require_program
from wirewitness.app.cli.commands import COMMANDS, command
from wirewitness.app.cli.guides import GUIDES
from wirewitness.dissectors.carriers.tls.key_logging import WAYS
from wirewitness.dissectors.registry import PROTOCOLS

WIDEST = 120


def commands_of(name: str, program: str) -> list[list[str]]:
    """What the page says to type of that program, continued lines joined, pipes cut off."""
    text = re.sub(r"\\\n\s*", "", invoke("guide", name).stdout)
    found = re.findall(rf"^    (?:.*[ |])?({program} [^|>\n]*)", text, re.MULTILINE)
    return [shlex.split(line) for line in found]


def test_the_list_names_every_page() -> None:
    shown = invoke("guide").stdout
    assert all(re.search(rf"^{name} +\S", shown, re.MULTILINE) for name in GUIDES)
    assert set(PROTOCOLS) <= set(GUIDES)


@pytest.mark.parametrize("name", GUIDES)
def test_commands_of_wirewitness_exist_with_their_options(name: str) -> None:
    for _, called, *words in commands_of(name, "wirewitness"):
        assert called in COMMANDS
        known = {option for param in command(called).params for option in param.opts}
        assert {word for word in words if re.match("--?[a-z]", word)} <= known


@pytest.mark.parametrize("name", [name for name, page in GUIDES.items() if "tcpdump -i" in page.text])
def test_tcpdump_understands_the_filters(name: str) -> None:
    program = require_program("tcpdump")
    commands = commands_of(name, "tcpdump")
    assert commands
    for words in commands:
        compiled = subprocess.run([program, "-d", "-y", "EN10MB", words[-1]], check=False, capture_output=True)
        assert compiled.returncode == 0, words


def test_pages_have_the_port_that_was_asked_for() -> None:
    assert "tcp port 9092'" in invoke("guide", "kafka").stdout
    shown = invoke("guide", "kubernetes", "--port", "9094").stdout
    assert "tcp port 9094'" in shown
    assert "PORT" not in shown
    assert "HOST:PORT" in invoke("guide", "keys").stdout


def test_the_page_about_tls_and_the_guide_name_the_same_ways_to_log_keys() -> None:
    """Both what is to be typed and whether it was tried; the rule takes its words from the same table."""
    page, shown = (ROOT / "docs" / "tls.md").read_text(), invoke("guide", "keys").stdout
    tried, _, others = shown.partition("Not tried:")
    rows = []
    for way in WAYS:
        how = f"`{way.command}`" + (f"; {way.note}" if way.note else "")
        rows.append(f"| {way.software} | {how} | {'tested' if way.tried else 'not tried'} |")
        assert re.search(
            rf"^    {re.escape(way.software)} +{re.escape(way.command)}$", tried if way.tried else others, re.M
        )
        assert way.note in shown
    assert "| software | how | |\n|---|---|---|\n" + "\n".join(rows) + "\n\n" in page


@pytest.mark.parametrize("name", GUIDES)
def test_lines_fit(name: str) -> None:
    text = [line for line in GUIDES[name].text.splitlines() if not line.startswith("    ")]
    assert max(map(len, text)) <= 80
    assert max(map(len, GUIDES[name].text.splitlines())) <= WIDEST


def test_an_unknown_page_is_told_from_a_known_one() -> None:
    answer = invoke("guide", "kafk")
    assert answer.exit_code == 2
    assert "did you mean kafka" in answer.stderr
