"""A process that is killed between two file operations: SIGKILL at the n-th change of names below a folder, or in the
middle of one.

In: a module's function, a folder and a number. Out: did it come to its end? The operations are those that Python's
audit events tell, and the begin and end of each new version of a table, which another language writes.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

# A process of its own: the runtime of delta-rs does not live on in a forked child.
_PROGRAM = """
import importlib, os, signal, sys, threading
from pathlib import Path
from wirewitness.analyser.archive.dataset.delta import DeltaFolder

module, function, folder = sys.argv[1:4]
left, later_us = int(sys.argv[4]), int(sys.argv[5])
act = getattr(importlib.import_module(module), function)
names = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"}
events = {"wirewitness.commit", *(() if later_us else names)}

def watch(event, arguments):
    global left
    if event not in events or not any(folder in str(one) for one in arguments):
        return
    if left == 0:
        if later_us:
            threading.Timer(later_us / 1e6, os.kill, (os.getpid(), signal.SIGKILL)).start()
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    left -= 1

commit = DeltaFolder.commit
def told(self, *given):
    sys.audit("wirewitness.commit", folder)
    version = commit(self, *given)
    sys.audit("wirewitness.commit", folder)
    return version
DeltaFolder.commit = told
sys.addaudithook(watch)
act(Path(folder))
"""


def killed_at(step: int, module: str, function: str, folder: Path, later_us: int = 0) -> bool:
    """Run a function with FOLDER and kill it before its operation number `step` (from 0); False when it ended.

    later_us: kill it so long after begin or end number `step` of a version instead.
    """
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, module, function, str(folder), str(step), str(later_us)],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if done.returncode == -signal.SIGKILL:
        return True
    assert done.returncode == 0, done.stderr.decode()
    return False
