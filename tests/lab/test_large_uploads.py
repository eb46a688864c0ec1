"""Parts that go to a real S3 server in several uploads, one of which fails: whole or never there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.conftest import IMPORT_PATH
from tests.lab.store_kinds import Store, files_of
from tests.lab.test_changes_in_stores import rows, state
from tests.support.changes import OLD, first, large
from tests.support.faulty_front import Fault, Request

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

LARGE_BYTES = 10 << 20
CODE = "import sys; from tests.support.changes import large; large(sys.argv[1])"
AFTER = sorted([*OLD, *200 * ["f-c-4"]])


def done_behind(store: Store, root: str, fault: Callable[[Callable[[], None]], Fault], times: int) -> tuple[int, str]:
    """How a process ends, and what it says, whose second upload of its large part meets this fault so many times. The
    fault may kill it."""
    running: list[subprocess.Popen[str]] = []
    met: list[Request] = []

    def goes_wrong(request: Request) -> Fault | None:
        if "partNumber=2" not in request.path or len(met) == times:
            return None
        met.append(request)
        return fault(running[0].kill)

    with store.front(goes_wrong) as front:
        environment = {**os.environ, **store.environment(front.port), "PYTHONPATH": IMPORT_PATH}
        running.append(subprocess.Popen([sys.executable, "-c", CODE, root], env=environment, stderr=subprocess.PIPE,
                                        text=True))  # fmt: skip
        said = running[0].communicate()[1]
    assert len(met) == times
    return running[0].returncode, said


@pytest.mark.parametrize("store", ["s3"], indirect=True)
@pytest.mark.parametrize("way", ["killed", "refused"])
def test_of_an_upload_that_breaks_off_nothing_counts(store: Store, way: str) -> None:
    root = store.address(f"broken-off/{way}")
    first(root)
    ended, said = done_behind(store, root, lambda kill: Fault(before=kill) if way == "killed" else Fault(403, "No"), 1)
    assert ended == -signal.SIGKILL if way == "killed" else "permission denied (403 Forbidden No)" in said
    assert (rows(root), state(root)) == (OLD, "one")
    assert max(files_of(root).values()) < LARGE_BYTES
    large(root)
    assert (rows(root), state(root)) == (AFTER, "large")
    assert sum(size > LARGE_BYTES for size in files_of(root).values()) == 1


@pytest.mark.parametrize("store", ["s3"], indirect=True)
def test_an_upload_that_fails_twice_is_made_again(store: Store) -> None:
    root = store.address("broken-off/again")
    first(root)
    assert done_behind(store, root, lambda _: Fault(500, "InternalError"), 2)[0] == 0
    assert (rows(root), state(root)) == (AFTER, "large")
