"""How the program ends, whatever happens inside."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner, Result

from app.cli.failure import CallerError, Status
from app.cli.main import GuardedGroup


@click.group(cls=GuardedGroup)
def program() -> None:
    """Commands that end in every way there is."""


@program.command()
@click.argument("how")
@click.option("--debug", is_flag=True)
def end(how: str, debug: bool) -> Status | None:
    """Ends as told."""
    endings = {
        "fault": KeyError("lost\nsecond line"),
        "caller": CallerError("no such thing\nhint"),
        "usage": click.UsageError("wrong"),
        "interrupt": KeyboardInterrupt(),
        "duckdb": RuntimeError("Query interrupted"),
        "file": click.FileError("x", "gone"),
    }
    if how in endings:
        raise endings[how]
    return Status.SOME_INPUT_UNREAD if how == "unread" else None


def ended(*arguments: str) -> Result:
    return CliRunner().invoke(program, list(arguments))


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ("well", 0),
        ("unread", 3),
        ("fault", 70),
        ("caller", 2),
        ("usage", 2),
        ("file", 2),
        ("interrupt", 130),
        ("duckdb", 130),
    ],
)
def test_statuses(how: str, status: int) -> None:
    result = ended("end", how)
    assert result.exit_code == status
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


def test_our_fault_is_one_line_with_the_way_to_the_trace() -> None:
    assert ended("end", "fault").stderr == (
        "wirewitness: internal error, please report it: KeyError: 'lost\\nsecond line'; "
        "run again with --debug for the trace\n"
    )


def test_debug_shows_the_trace() -> None:
    shown = ended("end", "fault", "--debug").stderr
    assert "Traceback (most recent call last):" in shown
    assert shown.splitlines()[-1].startswith("wirewitness: internal error")


def test_the_callers_mistake_keeps_its_hint() -> None:
    assert ended("end", "caller").stderr == "wirewitness: no such thing\nhint\n"


def test_an_unknown_command_is_usage() -> None:
    assert ended("ende").exit_code == 2
