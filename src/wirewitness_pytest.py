"""The plugin for pytest: a fixture that captures while a test runs, and asks whether the traffic keeps to a contract.

    def test_consumer_commits_in_order(wire):
        run_the_consumer()
        wire.expect("kafka-consumer", about={"group": "payments"})

In: what goes over an interface meanwhile, the loopback without more. Out: answers of `wirewitness expect`, `findings`
and `query` over these packets. All work is done by programs of their own, so a test's process imports nothing
of wirewitness.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

import pytest

_COMMAND = "from wirewitness.app.start import main; main()"
_CAPTURE = "from wirewitness.app.expect.capturing import main; main()"
_NO_RIGHT = 3
_USAGE = 2
_BEGIN_S = 20.0
_END_S = 5.0
# Packets come out of the kernel's ring, and into the file, in so many seconds; on the loopback a mark of our own says
# when they have.
SETTLED_S = 0.5
_MARKED_S = 20.0
_LOOPBACK = frozenset({"lo", "any"})
_NAMES = frozenset({"interfaces", "ports", "options"})


def pytest_addoption(parser: pytest.Parser) -> None:
    """Settings of the plugin, for pytest's configuration."""
    parser.addini("wire_interfaces", "wirewitness: interfaces that the fixture `wire` captures", "args", ["lo"])
    parser.addini("wire_ports", "wirewitness: only TCP packets from or to these ports", "args", [])
    parser.addini("wire_options", "wirewitness: options of its commands, such as --decode-as 29092=kafka", "args", [])


def pytest_configure(config: pytest.Config) -> None:
    """The marker, for --strict-markers."""
    config.addinivalue_line(
        "markers",
        "wire(interfaces=['lo'], ports=[], options=[]): what the fixture `wire` captures in this test (wirewitness)",
    )


@pytest.fixture
def wire(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Wire]:
    """Packets of this test. The test is skipped where this user may not capture."""
    capture = _Capture(tmp_path / "wire.pcapng", *_settings(request))
    try:
        yield Wire(capture)
    finally:
        capture.end()


class WireError(Exception):
    """A question that cannot be answered: an unknown rule or column, a capture that broke off."""


class Wire:
    """What went over the wire since the test began. Each question is about all packets up to now."""

    def __init__(self, capture: _Capture) -> None:
        self._capture = capture

    @property
    def path(self) -> Path:
        """The capture, for other tools; it lies in the test's `tmp_path`."""
        return self._capture.path

    def expect(self, rules: str | Path, *, about: Mapping[str, str] | None = None, strict: bool = False) -> None:
        """AssertionError with the evidence where the traffic does not keep to the rules, as `wirewitness expect` says.

        rules: the name of a contract that comes along, or the path of a TOML file. about: narrows it, such as
        {"group": "payments"}. strict: what has nothing to check fails, too. Raises WireError.
        """
        __tracebackhide__ = True
        narrowed = [word for name, value in (about or {}).items() for word in ("--about", f"{name}={value}")]
        done = self._ask("expect", str(rules), str(self.path), *narrowed, *(["--strict"] if strict else []))
        if done.returncode:
            raise AssertionError(f"the traffic does not keep to {rules}\n{done.stdout}\ncapture: {self.path}")

    def findings(self, *, at_least: str = "info") -> list[dict[str, Any]]:
        """The findings, as `wirewitness findings --format jsonl` has them. at_least: a severity. Raises WireError."""
        severities = ("info", "warning", "critical")
        if at_least not in severities:
            raise WireError(f"at_least must be one of {', '.join(severities)}, not {at_least!r}")
        found = _rows(self._ask("findings", str(self.path), "--format", "jsonl"))
        return [one for one in found if one["severity"] in severities[severities.index(at_least) :]]

    def sql(self, query: str) -> list[dict[str, Any]]:
        """The rows of one SELECT over the tables that `wirewitness tables` lists. Raises WireError."""
        return _rows(self._ask("query", str(self.path), query, "--format", "jsonl"))

    def _ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        self._capture.settle()
        done = subprocess.run(
            [sys.executable, "-P", "-c", _COMMAND, *words, "--quiet", *self._capture.options],
            capture_output=True, text=True, encoding="utf-8", errors="replace", env=_environment(COLUMNS="100"),
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        if done.returncode not in (0, 1):
            raise WireError(done.stderr.strip() or f"wirewitness ended with {done.returncode}")
        return done


class _Capture:
    """A running capture. Skips the test that asks for it where this user may not capture."""

    def __init__(self, path: Path, interfaces: Sequence[str], ports: Sequence[int], options: Sequence[str]) -> None:
        self.path, self.options = path, options
        self._mark: socket.socket | None = None
        if _LOOPBACK & {*interfaces}:
            self._mark = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._mark.bind(("127.0.0.1", 0))
        mark = None if self._mark is None else self._mark.getsockname()[1]
        job = json.dumps({"interfaces": list(interfaces), "ports": list(ports), "path": str(path), "mark": mark})
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _CAPTURE, job],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=_environment(),
            process_group=0,
        )  # fmt: skip
        self._stdin, self._stderr = cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stderr)
        until = time.monotonic() + _BEGIN_S
        while not (path.exists() and path.stat().st_size) and self._process.poll() is None:
            if time.monotonic() > until:
                self.end()
                raise WireError(f"no packet could be captured within {_BEGIN_S:.0f} s")
            time.sleep(0.01)
        if self._process.poll() is not None:
            self._give_up()

    def settle(self) -> None:
        """Wait until all packets up to now are in the file. WireError where the capture broke off."""
        if self._mark is None:
            time.sleep(SETTLED_S)
            self._check()
            return
        token, place = os.urandom(16), self.path.stat().st_size
        self._mark.sendto(token, self._mark.getsockname())
        until = time.monotonic() + _MARKED_S
        while not self._has(token, place):
            self._check()
            if time.monotonic() > until:
                raise WireError(f"packets were not written within {_MARKED_S:.0f} s: this machine is too busy")
            time.sleep(0.02)

    def _has(self, token: bytes, place: int) -> bool:
        with self.path.open("rb") as file:
            file.seek(place)
            return token in file.read()

    def _check(self) -> None:
        if self._process.poll() is not None:
            raise WireError(f"the capture broke off: {self._said()}")

    def end(self) -> None:
        """Stop capturing; the file stays."""
        if self._mark is not None:
            self._mark.close()
        with suppress(OSError):
            self._stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stderr.close()

    def _give_up(self) -> None:
        said, status = self._said(), self._process.returncode
        self.end()
        if status == _NO_RIGHT:
            pytest.skip(f"wire: {said}")
        raise WireError(said or f"the program that captures ended with {status}")

    def _said(self) -> str:
        lines = self._stderr.read().decode("utf-8", "replace").splitlines()
        return "; ".join(line.removeprefix("wirewitness: ") for line in lines)


def _settings(request: pytest.FixtureRequest) -> tuple[list[str], list[int], list[str]]:
    """Interfaces, ports and options: of the test's marker, else of pytest's configuration."""
    mark = request.node.get_closest_marker("wire")
    told = {} if mark is None else dict(mark.kwargs)
    unknown = sorted(told.keys() - _NAMES)
    if unknown or (mark is not None and mark.args):
        raise WireError(
            f"the marker wire knows {', '.join(sorted(_NAMES))}, by name; not {', '.join(unknown) or 'these'}"
        )
    interfaces, ports, options = (
        [*told.get(name, request.config.getini(f"wire_{name}"))] for name in ("interfaces", "ports", "options")
    )
    try:
        return [*map(str, interfaces)], [*map(int, ports)], [*map(str, options)]
    except ValueError as error:
        raise WireError(f"wire_ports: {error}") from error


def _rows(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def _environment(**more: str) -> dict[str, str]:
    """The package is found beside this file, whatever the working folder is."""
    own = os.path.dirname(os.path.abspath(__file__))
    before = os.environ.get("PYTHONPATH")
    kept = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}
    return {**kept, "PYTHONPATH": os.pathsep.join([own, *([before] if before else [])]), "NO_COLOR": "1", **more}
