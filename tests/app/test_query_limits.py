"""Queries that reach a limit of memory or of temporary files: a line says what is missing, and the exit status is 3."""

from __future__ import annotations

import errno
import os

import pytest

from tests.app.test_commands import invoke
from tests.conftest import SAMPLES
from wirewitness.analyser.analysis import views
from wirewitness.analyser.base.faults import LimitReached, counted, is_of_a_limit, of_limit, told
from wirewitness.app.shared.failure import Status

CAPTURE = SAMPLES / "kafka_stale_commit.pcapng"


@pytest.mark.parametrize(
    "words", [("table", "kafka_committed"), ("analyse", "--format", "json"), ("query", "SELECT * FROM kafka_committed")]
)
def test_what_a_capture_may_spill(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "CAPTURE_MEMORY", "12MB")
    monkeypatch.setattr(views, "TEMPORARY_BYTES", 0)
    monkeypatch.setattr(views, "TEMPORARY_BYTES_OF_ROW", 0)
    command, *rest = words
    given = (command, rest[0], CAPTURE) if command == "table" else (command, CAPTURE, *rest)
    result = invoke(*given)
    assert result.exit_code == Status.SOME_INPUT_UNREAD
    assert "a limit is reached, temporary files of a query, by the context of kafka_committed" in result.stderr
    assert "report it" not in result.stderr


def test_a_full_disk_is_no_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    said = told(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "rows of flows", "the rest of them is left out")
    assert said == (
        "a limit is reached, no space for temporary files (TMPDIR says where they lie), by rows of flows: the rest of "
        "them is left out"
    )
    assert is_of_a_limit(said)
    monkeypatch.setenv("WIREWITNESS_FAULTS", "")
    assert is_of_a_limit(told(LimitReached("7 rows"), "the context of mongo_conflicts", "further ones are left out"))
    assert is_of_a_limit(counted(of_limit("the rest is not decoded"), 1_234))
    fault = told(ValueError("x"), "rows of flows", "the rest of them is left out")
    assert not is_of_a_limit(fault)
    assert not is_of_a_limit(counted(fault, 2))
