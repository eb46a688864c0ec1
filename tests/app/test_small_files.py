"""Files of TOML that nobody wrote by hand are refused before they cost anything."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT
from wirewitness.app.shared.small_files import MOST_NAMES, NoSuchText, toml_of

CHAIN = ".".join("a" * (MOST_NAMES + 1))
QUOTED, SINGLE = CHAIN.replace("a", '"\\".="'), CHAIN.replace("a", "'='")
SPACED = CHAIN.replace(".", " .\t")
DEEP = {
    "key": f"{CHAIN} = 1",
    "table": f"[{CHAIN}]",
    "inline table": f"x = {{ y = [{{ {CHAIN} = 1 }}] }}",
    "spaces": f"{SPACED} = 1",
    "quoted": f"{QUOTED} = 1",
    "single quotes": f"{SINGLE} = 1",
    "behind a string": f"x = {{ y = '\"', {CHAIN} = 1, z = '\"' }}",
    "behind a string of lines": f'x = {{ y = """\\"""\n"b"""", {CHAIN} = 1, z = "c" }}',
    "behind one in single quotes": f"x = {{ y = '''\"'\n\"b'''', {CHAIN} = 1, z = 'c' }}",
    "behind a comment": f'x = 1 # """\n{CHAIN} = 1',
}
FLAT = {
    "fewer": f"{CHAIN[2:]} = 1",
    "in a string": f"x = '{CHAIN}'",
    "in a string of lines": f'x = """\n{CHAIN} = 1\n\\"""{CHAIN}""""',
    "in a comment": f"x = 1 # {CHAIN}",
    "many keys": "\n".join(f"{CHAIN[2:]}{number} = 1" for number in range(10)),
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_names_within_each_other(text: str) -> None:
    assert tomllib.loads(text)
    with pytest.raises(NoSuchText, match="names within each other"):
        toml_of(text)


@pytest.mark.parametrize("text", FLAT.values(), ids=FLAT)
def test_what_only_looks_like_it(text: str) -> None:
    assert toml_of(text) == tomllib.loads(text)


@pytest.mark.parametrize(
    "path", [*sorted(ROOT.glob("sample_pcaps/*.toml")), ROOT / "pyproject.toml"], ids=lambda p: p.name
)
def test_files_that_people_wrote(path: Path) -> None:
    text = path.read_text()
    assert toml_of(text) == tomllib.loads(text)
