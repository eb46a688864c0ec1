"""The program that captures for a test: packets of interfaces into a file, until standard input ends.

In: a JSON object {interfaces, ports, path, mark} in the first argument; mark: a UDP port of the loopback, or null,
whose packets are let through whatever the ports. Out: the file, whose appearing says that packets are
being taken; the exit status NO_RIGHT with a line on standard error where this user may not capture.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence

from wirewitness.app.shared.failure import CallerError, complain, say

NO_RIGHT = 3
_USAGE = 2
# Nobody reads what comes beside the file.
_BACKLOG_BYTES = 1 << 20


def main() -> None:
    """Run the job in the first argument."""
    from dataclasses import replace

    from wirewitness.analyser.capture.capturing import Capturing
    from wirewitness.analyser.capture.message_pipe import Outlet
    from wirewitness.analyser.live.capturer import may_capture
    from wirewitness.app.shared.live_options import capture_job

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests, whose end closes standard input
    told = json.loads(sys.argv[1])
    interfaces = tuple(told["interfaces"])
    if not may_capture():
        complain(f"no right to capture on {', '.join(interfaces)} (CAP_NET_RAW)")
        say(f"run as root, or grant it to this Python: sudo setcap cap_net_raw+ep {os.path.realpath(sys.executable)}")
        sys.exit(NO_RIGHT)
    try:
        job = capture_job(interfaces, _filter(told["ports"], told["mark"]), (), told["path"], None)
    except CallerError as error:
        error.show()
        sys.exit(_USAGE)
    job = replace(job, backlog_bytes=_BACKLOG_BYTES)
    Capturing(job, Outlet(sys.stdout.fileno(), job.backlog_bytes)).run(sys.stdin.fileno())


def _filter(ports: Sequence[int], mark: int | None) -> str:
    from wirewitness.analyser.capture.packet_filter import of_ports

    wanted = of_ports(ports)
    return f"({wanted}) or (udp port {mark})" if wanted and mark is not None else wanted
