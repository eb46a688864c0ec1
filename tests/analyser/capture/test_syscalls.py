"""A process that only looks can read, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.program import environment

TRIES = """
import ctypes, json, os, sys
from wirewitness.analyser.capture.workload_program import only_look
held = only_look()
tried = {}
def attempt(name, act):
    try:
        act()
        tried[name] = True
    except OSError:
        tried[name] = False
def attach():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(ctypes.c_long(16), ctypes.c_long(int(sys.argv[2])), None, None):
        raise OSError(ctypes.get_errno(), "ptrace")
attempt("read", lambda: open("/proc/self/stat").read())
attempt("write", lambda: open(sys.argv[1] + "/new", "w"))
attempt("append", lambda: open(sys.argv[1] + "/there", "a"))
attempt("memory", lambda: open(f"/proc/{sys.argv[2]}/mem", "r+b"))
attempt("attach", attach)
attempt("start", lambda: os.execv("/bin/true", ["true"]))
print(json.dumps([held, tried]))
"""


def test_only_reading_is_left(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("as before")
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            command = [sys.executable, "-c", TRIES, str(tmp_path), str(other.pid)]
            done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=True)
        finally:
            other.kill()
    held, tried = json.loads(done.stdout)
    if not held:
        pytest.skip(f"no filter of system calls for {os.uname().machine}, or the kernel has none")
    assert tried == dict.fromkeys(tried, False) | {"read": True}
    assert (tmp_path / "there").read_text() == "as before"
    assert not (tmp_path / "new").exists()
