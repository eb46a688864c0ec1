"""Speed and memory beside tshark, over captures that replay lab bytes.

    python -m tests.bench.run            about two hours on a quiet machine with two cores, 12 GB of disk
    python -m tests.bench.run --quick    a smoke run of some minutes; its figures say little
    python -m tests.bench.run --profile flows --profile decode

Most profiles (see profiles.py): five runs of both programs in turn over the same capture from a warm cache, output to a
file each; `analyse` in turn with them where a profile has one capture. Then one run each at 1, 2, 4 and 8 times a base
size for the peak memory, of `analyse` too where that is asked. Both must see every message that the generator wrote, or
the profile has no figures; `lossy` says what it counts. `real_*` are lab captures as they are, laid over each other,
where both count differently: ours must count the same each time. `tls` has Kafka inside TLS 1.3 and the key log,
`ordinary` three protocols and one incident. Each is read by two processes as well. `start` runs commands that have next
to nothing to do, `irregular` captures that are made so that lock-step is tried in vain, with it and without. `decode`
compares our decoders with kio's native ones, `records` the records of each codec, `mqtt` counts messages. `archive` and
`archive_ordinary` run once: the offline command with two processes, then archives on one and on two cores, over 5 GB
(12 GB of disk). `live` sends packets to a loopback at rising rates (see live.py).
Standard output gets Markdown; bench-out/result.json everything. Exit status 1 when the counts differ; a missed aim is
shown, not hidden, and does not change the exit status. What cannot be measured is skipped with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.bench.archives import MessagesMissing, measure_archives
from tests.bench.checks import CountsDiffer
from tests.bench.compare import Bench
from tests.bench.decode import costs
from tests.bench.hostile import hostile_costs
from tests.bench.live import delays_s, live_rates
from tests.bench.profiles import PROFILES, Profile
from tests.bench.programs import has_option, has_table, tshark_version
from tests.bench.report import markdown
from tests.bench.results import Results
from tests.bench.starts import start_costs

OUT = Path(__file__).resolve().parents[2] / "bench-out"
MEMORY_TIMES = (1, 2, 4, 8)
FULL_RUNS, QUICK_RUNS = 5, 1
DECODE_FULL, DECODE_QUICK = (7, 0.02), (3, 0.001)


def measure_profile(bench: Bench, profile: Profile, results: Results, args: argparse.Namespace) -> None:
    """Add one profile to the results. Raises CountsDiffer."""
    scale = profile.quick if args.quick else profile.full
    runs = args.runs or (QUICK_RUNS if args.quick else FULL_RUNS)
    reason = missing(profile)
    if reason:
        results.skipped.append(f"{profile.name}: {reason}")
        return
    if profile.kind == "start":
        results.starts += start_costs(args.out, runs)
    elif profile.kind == "irregular" and scale.timing:
        results.irregulars += hostile_costs(args.out, scale.timing.packets, runs)
    elif profile.kind == "decode":
        results.costs += costs(*(DECODE_QUICK if args.quick else DECODE_FULL))
    elif profile.kind == "archive" and scale.timing:
        results.archives.append(measure_archives(args.out, scale.timing.size_bytes, profile.replayed))
    elif profile.kind == "live":
        results.lives += live_rates(args.out, args.quick)
        results.delays_s += delays_s(args.out)
    elif profile.kind == "records" and scale.timing:
        options = ["--payload"] if has_option("--payload") else []
        results.timings += bench.records(profile, scale.timing, runs, options)
    elif scale.timing:
        measures = {
            "exchanges": bench.exchanges, "lossy": bench.lossy, "mongo": bench.mongo,
            "mqtt": bench.mqtt, "mqtt_lossy": bench.mqtt_lossy, "ordinary": bench.exchanges, "tls": bench.tls,
            "real": bench.real,
        }  # fmt: skip
        measure = measures[profile.kind]
        results.timings.append(measure(profile, scale.timing, runs))
    if scale.memory and not args.no_memory:
        for times in MEMORY_TIMES[::2] if args.quick else MEMORY_TIMES:
            results.memories.append(bench.memory(profile, scale.memory, times))


def missing(profile: Profile) -> str:
    """Why a profile cannot be measured here; empty when it can."""
    if profile.kind == "archive" and find_spec("pyspark") is None:
        return "PySpark is not installed"
    if profile.kind == "records" and not has_table("kafka_records"):
        return "wirewitness has no table kafka_records"
    if profile.kind == "live" and (os.geteuid() or shutil.which("tcpdump") is None):
        return "it needs root, for a network namespace, and tcpdump"
    return ""


def _machine() -> dict[str, Any]:
    cpuinfo = Path("/proc/cpuinfo")
    models = [line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "python": platform.python_version(),
        "tshark": tshark_version(),
    }


def _plain(value: Any) -> Any:
    """Named tuples as JSON objects, all the way down."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="speed and memory beside tshark")
    parser.add_argument("--quick", action="store_true", help="small captures, one run")
    parser.add_argument("--runs", type=int, help=f"runs of each program ({FULL_RUNS}; {QUICK_RUNS} with --quick)")
    parser.add_argument("--profile", choices=list(PROFILES), action="append", help="only this profile; repeatable")
    parser.add_argument("--no-memory", action="store_true", help="leave the memory table out")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for captures and results")
    return parser.parse_args()


def main() -> int:
    """See the module's docstring."""
    args = _arguments()
    machine, results = _machine(), Results()
    bench = Bench(args.out)
    differ = False
    try:
        for name in args.profile or PROFILES:
            try:
                measure_profile(bench, PROFILES[name], results, args)
            except (CountsDiffer, MessagesMissing) as error:
                # The other profiles' figures stand: an hour of them is not thrown away.
                differ = True
                results.skipped.append(f"{name}: {error}")
                print(f"{name}: {error}", file=sys.stderr)
    finally:
        bench.clean()
    print(f"{machine['cpu']}, {machine['cores']} cores, load before {machine['load_before']:.2f}, "
          f"Python {machine['python']}, {machine['tshark']}\n")  # fmt: skip
    if bench.unknown_fields:
        print(f"Fields that this tshark does not know: {', '.join(bench.unknown_fields)}\n")
    print(markdown(results, judged=not args.quick))
    told = {"machine": machine, "unknown_fields": bench.unknown_fields, **vars(results)}
    (args.out / "result.json").write_text(json.dumps(_plain(told), indent=1))
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
