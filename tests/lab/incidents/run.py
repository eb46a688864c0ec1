"""Make incidents.

In: names and options. Out: DIR/NAME-N/ with capture.pcapng, truth.json, broker.log.gz, and a line in DIR/INDEX.md each.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import traceback
from collections.abc import Collection, Sequence
from itertools import count, groupby
from pathlib import Path

from tests.lab import prerequisites
from tests.lab.incidents import libraries
from tests.lab.incidents.backdrop import Backdrop
from tests.lab.incidents.catalogue import Fault, all_faults
from tests.lab.incidents.incident import Incident
from tests.lab.incidents.world import World, world
from tests.lab.processes import LabError, ending_on_signals


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    made = argparse.ArgumentParser(prog="python -m tests.lab.incidents", description=__doc__)
    made.add_argument("names", nargs="*", metavar="NAME", help="incidents; NAME:LIBRARY and NAME:LIBRARY:PROTOCOL too")
    made.add_argument("--list", action="store_true", help="say what there is")
    made.add_argument("--output", type=Path, metavar="DIR", help="where incidents go")
    made.add_argument("--seed", type=int, help="the same names and times again")
    made.add_argument("--library", choices=libraries.LIBRARIES)
    made.add_argument("--protocol", choices=("classic", "consumer"))
    made.add_argument("--random", type=int, default=0, metavar="N", help="N incidents chosen by chance")
    return made


def wanted(
    options: argparse.Namespace, faults: dict[str, Fault], rng: random.Random
) -> list[tuple[Fault, str | None, str | None]]:
    """Return the incidents to make, those of one world together."""
    found: list[tuple[Fault, str | None, str | None]] = []
    for word in options.names:
        name, _, rest = word.partition(":")
        library, _, protocol = rest.partition(":")
        if name not in faults:
            raise SystemExit(f"unknown: {name}; --list names all")
        found.append((faults[name], library or options.library, protocol or options.protocol))
    found += [(rng.choice(list(faults.values())), options.library, options.protocol) for _ in range(options.random)]
    return sorted(found, key=lambda one: one[0].world, reverse=True)


def free_name(output: Path, name: str, taken: Collection[str] = ()) -> str:
    """Return NAME-1, or the next that is free and not TAKEN."""
    names = (f"{name}-{number}" for number in count(1))
    return next(one for one in names if one not in taken and not (output / one).exists())


def make(
    here: World, backdrop: Backdrop, fault: Fault, library: str | None, protocol: str | None, output: Path
) -> bool:
    """Make one incident; False (and nothing in OUTPUT) when it did not happen."""
    name = free_name(output, fault.name)
    directory = here.directory / name
    incident = Incident(here, name, directory, library, protocol)
    try:
        fault.run(incident)
        incident.end()
        incident.write()
    except LabError as error:
        print(f"{name}: {error}", file=sys.stderr, flush=True)
        return False
    except Exception:  # one fault's own mistake takes nothing from the others
        traceback.print_exc()
        return False
    finally:
        incident.close()
    shutil.copytree(directory, output / name, ignore=shutil.ignore_patterns("capture.pcap"))
    size = (output / name / "capture.pcapng").stat().st_size
    truth, expected = incident.truth, ",".join(incident.truth["expected"]) or "nothing"
    line = (
        f"{name}: {truth['fault']} | culprit {json.dumps(truth['culprit'])} | expected {expected} | {size // 1024} KiB"
    )
    with (output / "INDEX.md").open("a", encoding="utf-8") as index:
        index.write(f"- {line}\n")
    print(line, flush=True)
    return True


def main(words: Sequence[str]) -> int:
    """Run the command line; exit status 3 when an incident could not be made."""
    options = parser().parse_args(words)
    faults = all_faults()
    if options.list:
        for name, one in faults.items():
            print(f"{name:28} {one.about}{'  (' + ', '.join(one.libraries) + ')' if one.libraries else ''}")
        return 0
    if options.output is None:
        parser().error("--output is needed")
    if prerequisites.find_missing():
        return prerequisites.main()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**32)
    chosen = wanted(options, faults, random.Random(seed))
    libraries.prepare()
    options.output.mkdir(parents=True, exist_ok=True)
    good = True
    with ending_on_signals():
        for kind, group in groupby(chosen, key=lambda one: one[0].world):
            place = Path(tempfile.mkdtemp(prefix="wirewitness-incidents-"))
            with world(kind, place, seed) as here:
                backdrop = Backdrop(here)
                for fault, library, protocol in group:
                    good = make(here, backdrop, fault, library, protocol, options.output) and good
    return 0 if good else 3
