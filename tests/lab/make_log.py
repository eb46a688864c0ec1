"""Make a sample of a broker's request log again: `python -m tests.lab.make_log [NAME...]`.

In: scenarios of Kafka (none: kafka_stale_commit). Out: sample_pcaps/request_logs/NAME.log.gz, what the broker wrote in
a run of its own, and its entry in sample_pcaps/request_logs/MANIFEST.toml. Exit status as `make`.
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from tests.lab import make, prerequisites, runs
from tests.lab.processes import LabError, ending_on_signals

FOLDER = make.SAMPLES / "request_logs"
MANIFEST = FOLDER / "MANIFEST.toml"
USUAL = "kafka_stale_commit"
HEAD = """\
# Request logs as real brokers wrote them, gzipped; nothing in them is edited. Each is of a run of its own, not of that
# of the capture with its name. Made by python -m tests.lab.make_log, which also writes this file. Facts come from the
# lab's own reader of such logs and from what the clients printed, never from this project's.

"""


def entry_of(name: str, outcome: runs.Outcome, packed: bytes) -> dict[str, Any]:
    """One [[log]] of the manifest."""
    scenario = runs.load_scenario(name)
    with outcome.server_logs[0].open("rb") as lines:
        requests = sum(b"Completed request:" in line for line in lines)
    return {
        "file": f"{name}.log.gz",
        "shows": scenario.SHOWS,
        "scenario": f"tests.lab.scenarios.{name.replace('_', '.', 1)}",
        "made_by": f"python -m tests.lab.make_log {name}",
        "server": f"{scenario.SERVER.name} {scenario.SERVER.version}",
        "clients": list(scenario.CLIENTS),
        "requests": requests,
        "log_bytes": outcome.server_logs[0].stat().st_size,
        "size_bytes": len(packed),
        "sha256": hashlib.sha256(packed).hexdigest(),
        "expected_detectors": list(scenario.EXPECTED),
        "facts": outcome.facts,
    }


def keep(name: str, outcome: runs.Outcome) -> None:
    """Put the log of a run in place. LabError where it is too large, or of several brokers."""
    import tomli_w  # only the making of samples needs it

    if len(outcome.server_logs) != 1:
        raise LabError(f"{name}: logs of {len(outcome.server_logs)} brokers")
    packed = gzip.compress(outcome.server_logs[0].read_bytes(), compresslevel=9, mtime=0)
    if len(packed) > make.BROKER_LOG_LIMIT_BYTES:
        raise LabError(f"{name}: {len(packed)} bytes, the limit is {make.BROKER_LOG_LIMIT_BYTES}")
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.log.gz").write_bytes(packed)
    known = tomllib.loads(MANIFEST.read_text())["log"] if MANIFEST.exists() else []
    by_file = {one["file"]: one for one in (*known, entry_of(name, outcome, packed))}
    MANIFEST.write_text(HEAD + tomli_w.dumps({"log": [by_file[file] for file in sorted(by_file)]}))


def main(names: list[str]) -> int:
    """Make the named logs and return the exit status."""
    if prerequisites.find_missing():
        return prerequisites.main()
    directory = Path(tempfile.mkdtemp(prefix="wirewitness-lab-"))
    try:
        with ending_on_signals():
            for name in names or [USUAL]:
                keep(name, runs.run_until_good(name, directory / name))
    except LabError as error:
        print(f"{error}\nlogs are in {directory}", file=sys.stderr)
        return 3
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
