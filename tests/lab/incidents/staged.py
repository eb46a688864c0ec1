"""One incident in a network of its own: the programs that run in it, and who is to blame.

In: hosts, a directory, a source of lots. Out: processes that end with the incident, the truth as `judge` reads it.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.lab import net
from tests.lab.clients import python_command
from tests.lab.incidents.incident import iso
from tests.lab.incidents.names import Names
from tests.lab.processes import Process

PRESSURE = Path("/proc/pressure/cpu")


def waited_us() -> int | None:
    """Return for how long, in us, something waited for a processor of this machine; None: its kernel does not say.

    Source: the kernel's documentation, accounting/psi: `some`, `total`.
    """
    with contextlib.suppress(OSError):
        some = PRESSURE.read_text().splitlines()[0]
        return int(some.rpartition("total=")[2])
    return None


class Staged:
    """What a fault works with: clients by role, and who is to blame."""

    def __init__(self, hosts: dict[str, net.Host], directory: Path, rng: random.Random) -> None:
        self.hosts, self.directory, self.rng = hosts, directory, rng
        self.names = Names(rng)
        self.stack = ExitStack()
        self.truth: dict[str, Any] = {"healthy": True, "culprit": {}, "expected": [], "allowed": []}
        self.clients: list[dict[str, str]] = []
        self.number = 0
        self._began = time.monotonic(), waited_us()

    def start(self, host: str, *command: str) -> Process:
        """Start a program; it ends with the incident at the latest."""
        self.number += 1
        process = Process(f"{host}-{self.number}", self.hosts[host].command(*command), self.directory)
        self.stack.callback(process.stop)
        return process

    def seconds(self, least: float, most: float) -> None:
        """Wait for a random time."""
        time.sleep(self.rng.uniform(least, most))

    def who(self, host: str, client_id: str) -> dict[str, str]:
        """How a finding may name a client."""
        return {"client_id": client_id, "address": self.hosts[host].address}

    def blame(
        self,
        fault: str,
        culprit: dict[str, Any],
        *expected: str,
        allowed: Sequence[str] = (),
        sides: Sequence[str] = (),
    ) -> None:
        """Say what is wrong, who did it, and which codes may say so first.

        SIDES: whom a sentence may blame (`sides.py`), where that is not the culprit, which may be who suffers from it.
        """
        self.truth |= {"fault": fault, "healthy": False, "culprit": culprit, "expected": expected, "allowed": allowed}
        self.truth |= {"sides": sides} if sides else {}

    def ask(
        self, question: str, fault: str, culprit: dict[str, Any], must_say: Sequence[str],
        must_not_say: Sequence[str] = (), sides: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Say what is wrong where no code is known yet that says so: patterns judge it (`expect.py`).

        QUESTION: what kind it is, Q1 to Q9. MUST_SAY: each in one finding above info. MUST_NOT_SAY: in none of them.
        """
        self.blame(fault, culprit, sides=sides)
        self.truth |= {"question": question, "must_say": list(must_say), "must_not_say": list(must_not_say)}

    def far(self, host: str, delay_ms: int, port: int | None = None) -> None:
        """Make a host a far one until the incident ends; PORT: only what goes to it or comes from it."""
        words = [str(delay_ms), *([] if port is None else [str(port)])]
        self.start(host, *python_command("far_link", *words)).wait_for_event("ready")

    def healthy(self, what: str) -> None:
        """Say that nothing is wrong."""
        self.truth["fault"] = what

    def host_busy(self) -> float | None:
        """Return in which part of the time since the beginning something waited for a processor, 0 to 1."""
        began, before = self._began
        after = waited_us()
        if before is None or after is None:
            return None
        return round(min(1.0, (after - before) / 1e6 / max(time.monotonic() - began, 1e-3)), 3)

    def story(self, name: str, times: Sequence[float], beside: int) -> dict[str, Any]:
        """Return the truth. TIMES: beginning, since and until when it lasted. BESIDE: clients without a part in it."""
        began, since, until = times
        known = [f"{one['client_id']}@{one['address']}" for one in self.clients]
        return {
            **self.truth,
            "name": name,
            "when": [iso(since), iso(until)],
            "capture": [iso(began), iso(until)],
            "member_ids": {},
            "affected": {"clients": self.clients[beside:], "groups": [], "topics": []},
            "facts": {"broker": {"clients": known, "groups": {}}, "host_busy": self.host_busy()},
        }
