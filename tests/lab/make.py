"""Make the samples again: `python -m tests.lab.make [NAME...]`.

In: scenario names, short or with their protocol, or protocols (none: all). Out: sample_pcaps/PROTOCOL_NAME.pcapng, its
entry in MANIFEST.toml and, where it is small, the log of the run in sample_pcaps/broker_logs or client_logs. A sample
is replaced only when its whole run went well.
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
from pathlib import Path
from typing import Any

from tests.lab import prerequisites, runs
from tests.lab.processes import LabError, ending_on_signals, run
from tests.lab.servers import Server

SAMPLES = Path(__file__).parents[2] / "sample_pcaps"
MANIFEST = SAMPLES / "MANIFEST.toml"
SAMPLE_LIMIT_BYTES = 3_000_000
BROKER_LOG_LIMIT_BYTES = 700_000
# Whose log is kept, the server's or, where it writes none of what crosses the wire, its clients'.
LOG_KINDS = {"mongo": "client_log"}
HEAD = """\
# Captures that this project made with real servers and clients; nothing in them is written by hand or edited. Where one
# client is of our own, to break rules that no library breaks, `clients` says so.
# Made by `make lab` (python -m tests.lab.make), which also writes this file. Facts come from the run itself: from what
# the clients printed and from the server's own log, never from this project's decoder.

"""


def keep_log(name: str, server: Server, outcome: runs.Outcome) -> dict[str, str]:
    """Store what crossed the wire as the run's log tells it if it is small; return where, as the manifest names it."""
    kind = LOG_KINDS.get(server.protocol, "broker_log")
    target = SAMPLES / f"{kind}s" / f"{name}.jsonl.gz"
    target.parent.mkdir(exist_ok=True)
    server.save_log(server.read_logs(outcome.server_logs), target)
    if target.stat().st_size > BROKER_LOG_LIMIT_BYTES:
        target.unlink()
        return {}
    return {kind: str(target.relative_to(SAMPLES))}


def count_packets(pcap: Path) -> int:
    """Return the number of packets as capinfos counts them."""
    return int(run(["capinfos", "-c", "-M", "-T", "-r", str(pcap)]).split("\t")[-1])


def manifest_entry(name: str, outcome: runs.Outcome) -> dict[str, Any]:
    """Return one [[sample]] of MANIFEST.toml."""
    scenario = runs.load_scenario(name)
    server = scenario.SERVER
    content = outcome.pcap.read_bytes()
    return {
        "file": outcome.pcap.name,
        "protocol": server.protocol,
        "shows": scenario.SHOWS,
        "scenario": f"tests.lab.scenarios.{name.replace('_', '.', 1)}",
        "made_by": f"python -m tests.lab.make {name}",
        "server": f"{server.name} {server.version}",
        "clients": list(scenario.CLIENTS),
        "packets": count_packets(outcome.pcap),
        "size_bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "expected_detectors": list(scenario.EXPECTED),
        "facts": outcome.facts,
        **keep_log(name, server, outcome),
    }


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
    unknown = [name for name in names if not runs.names_meant(name)]
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
            for name in [full for word in names for full in runs.names_meant(word)] or runs.SCENARIOS:
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
