"""Make incidents of MQTT, several at a time: most of an incident is waiting."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.lab import capture, mochi, mosquitto, net
from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt import beside
from tests.lab.incidents.mqtt.brokers import Place
from tests.lab.incidents.mqtt.catalogue import Fault, all_faults
from tests.lab.incidents.mqtt.incident import BESIDE, HOSTS, Incident
from tests.lab.incidents.run import free_name
from tests.lab.processes import LabError, ending_on_signals

ALONE = 0.3  # of the incidents have no healthy traffic beside them
SETTLE_S = (1.0, 3.0)


def make_in(fault: Fault, name: str, place: Path, rng: random.Random) -> dict[str, object]:
    """Run one incident in PLACE and return its truth; the capture is in PLACE."""
    with net.network(("broker", "hub"), (*BESIDE, *HOSTS)) as hosts:
        broker = Place(hosts["broker"], place, fault.broker, rng)
        it = Incident(hosts, broker, place, rng)
        try:
            broker.start()
            with it.stack, capture.capturing(hosts["broker"], place / "capture.pcapng", place):
                began = time.time()
                if rng.random() >= ALONE and not fault.broker.alone:
                    beside.start(it)
                    it.seconds(*SETTLE_S)
                others, since = len(it.clients), time.time()
                fault.run(it)
                until = time.time()
        finally:
            broker.stop()
        return it.story(name, (began, since, until), others) | {"about": fault.about}


def make(fault: Fault, folder: Path, seed: str) -> bool:
    """Make one incident in FOLDER; False (and no folder) where it did not happen."""
    with tempfile.TemporaryDirectory(prefix="wirewitness-mqtt-") as name:
        try:
            truth = make_in(fault, folder.name, Path(name), random.Random(seed))
        except LabError as error:
            print(f"{folder.name}: {error}", file=sys.stderr, flush=True)
            return False
        except Exception:  # one fault's own mistake takes nothing from the others
            traceback.print_exc()
            return False
        folder.mkdir(parents=True)
        shutil.copy(Path(name) / "capture.pcapng", folder)
        (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    expected = ",".join(truth["expected"]) or "nothing"  # type: ignore[arg-type]
    print(f"{folder.name}: {truth['fault']} | {truth['broker']} | expected {expected}", flush=True)
    return True


def prepared() -> None:
    """Build or fetch brokers and clients."""
    mochi.Mochi().prepare()
    mosquitto.Mosquitto().prepare()
    mqtt.prepare(*mqtt.LIBRARIES)


def main(words: Sequence[str]) -> int:
    """Run the command line; exit status 3 when an incident could not be made."""
    known = all_faults()
    parser = argparse.ArgumentParser(prog="python -m tests.lab.incidents.mqtt", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true", help="say what there is")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where incidents go")
    parser.add_argument("--seed", type=int, default=None, help="the same names and choices again")
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="each so many times")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="incidents at a time")
    options = parser.parse_args(words)
    if options.list:
        for one in known.values():
            print(f"{one.name:24} {one.about}")
        return 0
    if options.output is None:
        parser.error("--output is needed")
    if unknown := set(options.names) - set(known):
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; --list names all")
    prepared()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**32)
    wanted = [known[name] for name in options.names or known] * options.rounds
    options.output.mkdir(parents=True, exist_ok=True)
    made: set[str] = set()
    with ending_on_signals(), ProcessPoolExecutor(options.processes) as pool:
        waiting = []
        for one in wanted:
            name = free_name(options.output, f"mqtt_{one.name}", made)
            made.add(name)
            waiting.append(pool.submit(make, one, options.output / name, f"{seed} {name}"))
        good = [one.result() for one in waiting]
    return 0 if all(good) else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
