"""Make incidents of MongoDB; several at a time, as most of an incident is waiting.

In: names (none: all). Out: DIR/mongo_NAME-N/ with capture.pcapng and truth.json, as `judge` reads them.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.conftest import IMPORT_PATH
from tests.lab import capture, net
from tests.lab.clients import mongo_workers
from tests.lab.incidents.mongo import (
    again_and_more,
    concerns,
    ended,
    everyday_work,
    faults,
    from_outside,
    front_doors,
    growing,
    habits,
    healthy,
    jobs_and_data,
    limits,
    no_effect,
    odd_but_fine,
    odd_but_right,
    on_the_way,
    one_document,
    rash,
    refusals,
    refused,
    rhythm,
    schema,
    side_by_side,
    slow_parts,
    together,
    waits,
    wrong_words,
)  # fmt: skip
from tests.lab.incidents.mongo.incident import HOSTS, LAG_S, LOGIN, Incident
from tests.lab.incidents.run import free_name
from tests.lab.mongo_servers import PORT, SECOND_PORT, FerretDB, stopped, wait_for_words
from tests.lab.processes import LabError, Process, ending_on_signals

ALONE = 0.3  # of the incidents have no healthy traffic beside them
COMPRESSED = 0.5  # of the test servers compress
Fault = Callable[[Incident], None]
# Those that FerretDB can show, too: no member of a replica set, nothing that the test server does on request.
ANY_SERVER: tuple[Fault, ...] = (
    faults.n_plus_one, faults.n_plus_one_burst, faults.n_plus_one_in, faults.client_per_request,
    faults.growing_cursors, faults.duplicate_keys, healthy.batched, healthy.many_users, healthy.exported, healthy.tools,
)  # fmt: skip
# Those that FerretDB alone can show: it takes no OP_QUERY, as MongoDB from 5.1 on.
FERRETDB_ONLY: tuple[Fault, ...] = (faults.refused_driver,)
FAULTS: tuple[Fault, ...] = (
    *ANY_SERVER, *FERRETDB_ONLY, faults.pool_saturated, faults.slow_shape, faults.stale_read, faults.write_to_secondary,
    faults.server_stands_still, faults.wrong_password, faults.cut_connections, faults.write_cut, faults.idle_dropped,
    faults.transaction_open, faults.transaction_abandoned, faults.legacy_driver, healthy.ordinary_pool,
    healthy.busy_threads, healthy.stepped_down, healthy.patient_reader, healthy.transactions,
)  # fmt: skip
# By question; no code is known for them yet, patterns judge them.
BY_QUESTION: tuple[Fault, ...] = (
    *no_effect.FAULTS, *one_document.FAULTS, *refused.FAULTS, *ended.FAULTS, *waits.FAULTS, *growing.FAULTS,
    *habits.FAULTS, *everyday_work.FAULTS, *limits.FAULTS, *schema.FAULTS, *rash.FAULTS, *rhythm.FAULTS,
    *together.FAULTS, *slow_parts.FAULTS, *concerns.FAULTS, *refusals.FAULTS, *odd_but_fine.FAULTS,
    *wrong_words.FAULTS, *on_the_way.FAULTS, *again_and_more.FAULTS,
    *front_doors.FAULTS, *jobs_and_data.FAULTS, *odd_but_right.FAULTS,
    *side_by_side.FAULTS, *from_outside.FAULTS,
)  # fmt: skip
# Those of them that need FerretDB: its work grows with what it reads, as MongoDB's does, while that of the test server
# grows with all rows of the collection.
ON_FERRETDB: tuple[Fault, ...] = (
    growing.skips,
    growing.scan_grows,
    growing.row_grows,
    no_effect.batch_of_one,
    everyday_work.import_of_files,
    *schema.ON_FERRETDB,
    *rash.ON_FERRETDB,
    *rhythm.ON_FERRETDB, *slow_parts.ON_FERRETDB, *wrong_words.ON_FERRETDB, *front_doors.ON_FERRETDB,
    *jobs_and_data.ON_FERRETDB, *side_by_side.ON_FERRETDB, *from_outside.ON_FERRETDB,
)  # fmt: skip
# What the test server is told beside the usual.
SERVER_WORDS: dict[Fault, tuple[str, ...]] = {
    ended.unreachable_hosts: (f"--calls-itself={ended.ADVERTISED}",),
    limits.dead_secondary: (f"--also={net.SUBNET}.{net.FIRST_SERVER}:{limits.GONE_PORT}",),
    limits.connection_limit: (f"--max-connections={limits.CONNECTIONS}",),
    ended.old_server: (f"--max-wire-version={ended.OLD_WIRE_VERSION}",),
}
# The same where it has a secondary.
MORE_WORDS: dict[Fault, tuple[str, ...]] = {**limits.WORDS, **schema.WORDS}
WANT_LOGIN: tuple[Fault, ...] = (faults.wrong_password, refused.wrong_auth_database, limits.no_login,
                                  again_and_more.mechanism_not_there, *front_doors.LOGIN_NEEDED)  # fmt: skip
# Whose server the healthy traffic of drivers would not find, or not take.
ALONE_ONLY: tuple[Fault, ...] = tuple(SERVER_WORDS)
KNOWN = {fault.__name__: fault for fault in (*FAULTS, *BY_QUESTION)}


def about(fault: Fault) -> str:
    """Return what happens, as a fault says it."""
    return (fault.__doc__ or "").strip().splitlines()[0]


class Wanted(NamedTuple):
    """One incident to make."""

    fault: str
    folder: Path
    seed: str
    ferretdb: bool
    drivers: tuple[str, ...]


@contextmanager
def serving(it: Incident, fault: Fault, ferretdb: bool) -> Iterator[None]:
    """Hold the server; a test server has a secondary that is late."""
    if ferretdb:
        with FerretDB().running([it.hosts["server"]], it.directory):
            yield
        return
    words = [f"--address={it.address}", f"--port={PORT}"]
    if fault not in SERVER_WORDS:
        words += [f"--secondary={SECOND_PORT}", f"--lag-s={LAG_S}"]
    if it.rng.random() < COMPRESSED:
        it.compressors = ("snappy", "zlib", "zstd")
        words.append(f"--compressors={','.join(it.compressors)}")
    words += [*SERVER_WORDS.get(fault, ()), *MORE_WORDS.get(fault, ())]
    if fault in WANT_LOGIN:
        words.append(f"--user={LOGIN}")
        it.login = f"{LOGIN}@"
    program = it.hosts["server"].command(sys.executable, "-m", "tests.support.mongo_server", *words)
    it.server = Process("server", program, it.directory, {"PYTHONPATH": IMPORT_PATH})
    with stopped(it.server):
        wait_for_words(it.server, it.server.stdout_path, "listening")
        yield


def healthy_traffic(it: Incident) -> None:
    """Two applications that do ordinary work."""
    for host in ("shop", "site"):
        it.work(host, "everyday", it.names.client(), seconds=150).wait_for_event("ready")


def make_in(wanted: Wanted, place: Path, rng: random.Random) -> dict[str, Any]:
    """Run one incident in PLACE and return its truth; the capture is in PLACE."""
    fault = KNOWN[wanted.fault]
    with net.network(("server",), HOSTS) as hosts:
        it = Incident(hosts, place, rng, wanted.drivers)
        needed = fault in FERRETDB_ONLY or fault in ON_FERRETDB
        on_ferretdb = needed or (wanted.ferretdb and fault in ANY_SERVER and rng.random() < 0.5)
        with serving(it, fault, on_ferretdb), it.stack:
            began = time.time()
            with capture.capturing(hosts["server"], place / "capture.pcapng", place):
                if rng.random() >= ALONE and fault not in ALONE_ONLY:
                    healthy_traffic(it)
                beside, since = len(it.clients), time.time()
                fault(it)
                until = time.time()
        truth = it.story(wanted.folder.name, (began, since, until), beside)
        server = "FerretDB" if on_ferretdb else "test server"
        return truth | {"about": about(fault), "server": server, "alone": not beside}


def make(wanted: Wanted) -> bool:
    """Make one incident; False, and no folder, where it did not happen."""
    name = wanted.folder.name
    with tempfile.TemporaryDirectory(prefix="wirewitness-mongo-") as place:
        try:
            truth = make_in(wanted, Path(place), random.Random(wanted.seed))
        except LabError as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            return False
        except Exception:  # one fault's own mistake takes nothing from the others
            traceback.print_exc()
            return False
        wanted.folder.mkdir(parents=True)
        shutil.copy(Path(place) / "capture.pcapng", wanted.folder)
        (wanted.folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    took_part = ",".join(truth["facts"]["libraries"])
    expected = ",".join(truth["expected"]) or "nothing"
    print(f"{name}: {truth['fault']} | {truth['server']} | {took_part} | expected {expected}", flush=True)
    return True


def options_of(words: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.incidents.mongo", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true", help="say what there is")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where incidents go")
    parser.add_argument("--seed", type=int, help="the same names and choices again")
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="each so many times")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="incidents at a time")
    parser.add_argument("--no-ferretdb", action="store_true", help="take the test server only")
    parser.add_argument("--drivers", nargs="+", choices=mongo_workers.DRIVERS, default=mongo_workers.DRIVERS)
    options = parser.parse_args(words)
    if options.output is None and not options.list:
        parser.error("--output is needed")
    if unknown := set(options.names) - set(KNOWN):
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(KNOWN)}")
    return options


def main(words: Sequence[str]) -> int:
    """Run the command line; exit status 3 when an incident could not be made."""
    options = options_of(words)
    if options.list:
        for name, fault in KNOWN.items():
            print(f"{name:24} {about(fault)}")
        return 0
    names = options.names or [
        name for name in KNOWN if not (options.no_ferretdb and KNOWN[name] in (*FERRETDB_ONLY, *ON_FERRETDB))
    ]
    mongo_workers.prepare()
    if not options.no_ferretdb or any(KNOWN[name] in (*FERRETDB_ONLY, *ON_FERRETDB) for name in names):
        FerretDB().prepare()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**32)
    options.output.mkdir(parents=True, exist_ok=True)
    made: set[str] = set()
    wanted = []
    for name in names * options.rounds:
        folder = free_name(options.output, f"mongo_{name}", made)
        made.add(folder)
        wanted.append(
            Wanted(name, options.output / folder, f"{seed} {folder}", not options.no_ferretdb, tuple(options.drivers))
        )
    with ending_on_signals(), ProcessPoolExecutor(options.processes) as pool:
        done = list(pool.map(make, wanted))
    return 0 if all(done) else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
