"""Make the samples again: `python -m tests.lab.make [NAME...]`.

In: scenario names (none: all). Out: sample_pcaps/kafka_NAME.pcapng, its entry in MANIFEST.toml and, where it is small,
the broker's request log of the run in sample_pcaps/broker_logs. A sample is replaced only when its whole run went well.
Exit status 1 with a list when programs are missing, 2 for an unknown name, 3 when a run failed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.lab import broker_log, prerequisites, runs
from tests.lab.processes import LabError, ending_on_signals, run

SAMPLES = Path(__file__).parents[2] / "sample_pcaps"
MANIFEST = SAMPLES / "MANIFEST.toml"
SAMPLE_LIMIT_BYTES = 3_000_000
BROKER_LOG_LIMIT_BYTES = 700_000
HEAD = """\
# Captures that this project made with real servers and clients; nothing in them is written by hand or edited.
# Made by `make lab` (python -m tests.lab.make), which also writes this file. Facts come from the run itself: from what
# the clients printed and from the broker's request log, never from this project's decoder.

"""


def keep_broker_log(name: str, request_logs: Iterable[Path]) -> str | None:
    """Store what was asked over the wire (a run's request logs) if it is small; return its path below sample_pcaps."""
    target = SAMPLES / "broker_logs" / f"kafka_{name}.jsonl.gz"
    target.parent.mkdir(exist_ok=True)
    broker_log.save(broker_log.load_all(request_logs, on_wire=True), target)
    if target.stat().st_size > BROKER_LOG_LIMIT_BYTES:
        target.unlink()
        return None
    return str(target.relative_to(SAMPLES))


def count_packets(pcap: Path) -> int:
    """Return the number of packets as capinfos counts them."""
    return int(run(["capinfos", "-c", "-M", "-T", "-r", str(pcap)]).split("\t")[-1])


def manifest_entry(name: str, outcome: runs.Outcome) -> dict[str, Any]:
    """Return one [[sample]] of MANIFEST.toml."""
    scenario = runs.load_scenario(name)
    content = outcome.pcap.read_bytes()
    entry = {
        "file": outcome.pcap.name,
        "protocol": "kafka",
        "shows": scenario.SHOWS,
        "scenario": f"tests.lab.scenarios.{name}",
        "made_by": f"python -m tests.lab.make {name}",
        "broker": f"Apache Kafka {runs.setup_of(scenario).version}",
        "clients": list(scenario.CLIENTS),
        "packets": count_packets(outcome.pcap),
        "size_bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "expected_detectors": list(scenario.EXPECTED),
        "facts": outcome.facts,
    }
    log = keep_broker_log(name, outcome.broker_logs)
    return entry if log is None else {**entry, "broker_log": log}


def write_manifest(entries: list[dict[str, Any]]) -> None:
    """Write MANIFEST.toml with these entries in place of older ones of the same file."""
    import tomli_w  # only the making of samples needs it, not the tests that read them

    known = tomllib.loads(MANIFEST.read_text())["sample"] if MANIFEST.exists() else []
    by_file = {entry["file"]: entry for entry in [*known, *entries]}
    ordered = [by_file[file] for file in sorted(by_file)]
    MANIFEST.write_text(HEAD + tomli_w.dumps({"sample": ordered}))


def make_sample(name: str, directory: Path) -> None:
    """Run one scenario and put its sample in place; raises LabError if the sample would be too large."""
    began = time.monotonic()
    outcome = runs.run_until_good(name, directory)
    size = outcome.pcap.stat().st_size
    if size > SAMPLE_LIMIT_BYTES:
        raise LabError(f"{name}: {size} bytes, the limit is {SAMPLE_LIMIT_BYTES}")
    SAMPLES.mkdir(exist_ok=True)
    entry = manifest_entry(name, outcome)
    target = SAMPLES / outcome.pcap.name
    shutil.copyfile(outcome.pcap, target)
    target.chmod(0o644)
    write_manifest([entry])
    print(f"{target.name}: {size} bytes, {entry['packets']} packets, {time.monotonic() - began:.0f} s", flush=True)


def main(names: list[str]) -> int:
    """Make the named samples and return the exit status."""
    unknown = [name for name in names if name not in runs.SCENARIOS]
    if unknown:
        print(f"unknown: {' '.join(unknown)}; known: {' '.join(runs.SCENARIOS)}", file=sys.stderr)
        return 2
    if prerequisites.find_missing():
        return prerequisites.main()
    if importlib.util.find_spec("tomli_w") is None:
        print("the Python package tomli-w is missing (extra lab)", file=sys.stderr)
        return 1
    directory = Path(tempfile.mkdtemp(prefix="wirewitness-lab-"))
    keep = False
    try:
        with ending_on_signals():
            for name in names or runs.SCENARIOS:
                make_sample(name, directory / name)
    except LabError as error:
        keep = True
        print(f"{error}\nlogs are in {directory}", file=sys.stderr)
        return 3
    finally:
        if not keep:
            shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
