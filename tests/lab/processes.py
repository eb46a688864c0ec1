"""Child processes of the lab: started in a namespace, logged to files, ended for sure.

In: a command. Out: a Process whose standard output (JSON lines of the clients) can be awaited.
A child dies with the lab even when the lab is killed: setpriv asks the kernel for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

POLL_S = 0.05


class LabError(RuntimeError):
    """A lab run that cannot go on: a program failed or something did not happen in time."""


def run(command: list[str], cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """Run a command to its end and return its standard output; raise LabError with its words if it fails."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(
            f"{' '.join(command)}\nexit status {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        )
    return done.stdout


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float) -> None:
    """Poll CONDITION until it holds; raise LabError naming WHAT after timeout_s."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(f"not within {timeout_s:g} s: {what}")
        time.sleep(POLL_S)


def read_events(path: Path) -> list[dict[str, Any]]:
    """Return the JSON objects among a client's output lines; a line still being written is left out."""
    found = []
    for line in path.read_text(errors="replace").splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            value = json.loads(line)
            if isinstance(value, dict):
                found.append(value)
    return found


class Process:
    """A running child: its log files, its events, its end."""

    def __init__(self, name: str, command: list[str], log_dir: Path, env: dict[str, str] | None = None) -> None:
        self.name = name
        self.stdout_path = log_dir / f"{name}.out"
        self.stderr_path = log_dir / f"{name}.err"
        with self.stdout_path.open("wb") as out, self.stderr_path.open("wb") as err:
            self._popen = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Of the program that was started: what runs it (setpriv, ip netns exec) becomes it."""
        return self._popen.pid

    @property
    def is_running(self) -> bool:
        """Has it not ended?"""
        return self._popen.poll() is None

    def events(self) -> list[dict[str, Any]]:
        """Return the JSON lines printed so far."""
        return read_events(self.stdout_path)

    def named_events(self, name: str) -> list[dict[str, Any]]:
        """Return the events of one kind."""
        return [event for event in self.events() if event.get("event") == name]

    def wait_for_event(self, name: str, count: int = 1, timeout_s: float = 30) -> dict[str, Any]:
        """Wait until COUNT events of this kind were printed and return the last of them."""

        def happened() -> bool:
            if len(self.named_events(name)) >= count:
                return True
            self.check_alive(f"event {name!r}")
            return False

        wait_until(happened, f"{self.name}: {count} x event {name!r}\n{self._last_words()}", timeout_s)
        return self.named_events(name)[count - 1]

    def check_alive(self, waiting_for: str) -> None:
        """Raise LabError with the child's last words if it ended while something was expected of it."""
        if self._popen.poll() is not None:
            raise LabError(
                f"{self.name} ended with {self._popen.returncode} before {waiting_for}\n{self._last_words()}"
            )

    def finish(self, timeout_s: float = 60) -> None:
        """Wait for the child's own end; raise LabError unless it ends well."""
        try:
            status = self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise LabError(f"{self.name} did not end within {timeout_s:g} s\n{self._last_words()}") from None
        if status != 0:
            raise LabError(f"{self.name} ended with {status}\n{self._last_words()}")

    def ask_to_end(self) -> None:
        """Send SIGTERM and return at once."""
        self._popen.send_signal(signal.SIGTERM)

    def interrupt(self) -> None:
        """Send SIGINT, as Ctrl-C does, and return at once."""
        self._popen.send_signal(signal.SIGINT)

    def freeze(self) -> None:
        """Stop the child where it is: its connections stay open and it says nothing more."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen child go on."""
        self._signal_all(signal.SIGCONT)

    def kill(self) -> None:
        """End the child at once, without any chance to say goodbye."""
        self._signal_all(signal.SIGKILL)
        self._popen.wait()

    def terminate(self, timeout_s: float = 30) -> None:
        """Ask the child to end in order and wait for it; raise LabError unless it ends well."""
        self.ask_to_end()
        self.finish(timeout_s)

    def stop(self, timeout_s: float = 10) -> None:
        """End the child by whatever it takes; never raises for one that has ended."""
        if self._popen.poll() is None:
            self._popen.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(timeout_s)
        with contextlib.suppress(ProcessLookupError):
            self._signal_all(signal.SIGKILL)
        self._popen.wait()

    def _signal_all(self, number: int) -> None:
        os.killpg(self._popen.pid, number)

    def _last_words(self) -> str:
        return self.stderr_path.read_text(errors="replace")[-2000:]


def terminate_all(*processes: Process) -> None:
    """Ask all to end at once, so that none takes over what another leaves; raise LabError unless all end well."""
    for process in processes:
        process.ask_to_end()
    for process in processes:
        process.finish()


@contextlib.contextmanager
def ending_on_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into an exception while the block runs, so that every context manager cleans up."""

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
