"""Applications of MongoDB for incidents, alike with four drivers: pymongo, Node's, Go's and Java's.

In: a driver, a work, where the server is, the application's name, options of the work. Out: the command that runs it.
Each prints `ready` when it begins, `resting` where it rests and `done` at its end. mgo is a driver of the time before
OP_MSG; it knows one work.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.lab import clients, kafka
from tests.lab.clients import mongo
from tests.lab.clients.node import fetched
from tests.lab.places import WORK_DIR
from tests.lab.processes import run

DRIVERS = ("pymongo", "node", "go", "java")
# What a driver compresses with as it is installed here; the Node driver needs native modules for more.
COMPRESSORS = {
    "pymongo": ("snappy", "zlib", "zstd"), "node": ("zlib",), "go": ("snappy", "zlib", "zstd"),
    "java": ("snappy", "zlib", "zstd"),
}  # fmt: skip
# Works and their options, with what holds where nothing is said; times in s.
WORKS: dict[str, dict[str, Any]] = {
    "everyday": {"seconds": 15},
    "one_by_one": {"how": "turn", "rounds": 3},
    "populate": {"seconds": 15},
    "users": {"threads": 8, "seconds": 15, "pause_s": 0.2},
    "client_per_request": {"count": 40},
    "reports": {"threads": 8, "seconds": 15, "pause_s": 0},
    "distinct": {"count": 9},
    "cursors": {"count": 26, "rest_s": 12},
    "export": {"seconds": 15},
    "duplicates": {"count": 9},
    "read_own_writes": {"count": 15, "pause_s": 0.01},
    "writes": {"count": 12},
    "logins": {"count": 30},
    "pause": {"rest_s": 20},
    "transactions": {"count": 20},
    "transaction_left": {"how": "stay", "rest_s": 70},
    "step_down": {"seconds": 2},
}
# All others first insert rows.
NO_ROWS = ("client_per_request", "writes", "logins", "read_own_writes", "step_down")
PYTHON_ONLY = ("step_down",)  # an operator's, not an application's
JAVA_SOURCE = clients.CLIENTS_DIR / "java_mongo"
JAVA_JARS = WORK_DIR / "mongo-java-libs"
JAVA_CLASSES = WORK_DIR / "mongo-java-classes"


def prepare() -> None:
    """Fetch and build all of them, unless that is done."""
    mongo.prepare()
    clients.go_program("go_mongo")
    clients.go_program("go_mgo")
    clients.go_program("go_mongo_asks")
    clients.go_program("go_mongo_old")
    kafka.copy_jars(JAVA_SOURCE / "pom.xml", JAVA_JARS)
    sources = sorted(JAVA_SOURCE.glob("*.java"))
    stamp = JAVA_CLASSES / "compiled"
    if not stamp.exists() or stamp.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        run(["javac", "-Xlint:all", "-d", str(JAVA_CLASSES), "-cp", f"{JAVA_JARS}/*", *map(str, sources)])
        stamp.touch()


def program(driver: str) -> list[str]:
    """Return a driver's program, to which the words are added; `prepare` has built it."""
    if driver == "pymongo":
        return clients.python_command("mongo_worker")
    if driver == "node":
        return ["node", str(fetched(mongo.NODE) / "worker.js")]
    if driver == "java":
        return ["java", "-Xms32m", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                "-cp", f"{JAVA_CLASSES}:{JAVA_JARS}/*", "Worker"]  # fmt: skip
    return [str(clients.BINARIES / f"go_{'mgo' if driver == 'mgo' else 'mongo'}")]


def command(driver: str, work: str, uri: str, name: str, place: str, options: Mapping[str, Any]) -> list[str]:
    """Return the command of an application NAME that works on PLACE (DATABASE.COLLECTION).

    URI may hold options as every driver's connection string takes them. `fail_point` in OPTIONS is a command for the
    database admin that the application sends first.
    """
    plan = {**WORKS[work], "place": place, "fill": work not in NO_ROWS, **options}
    return [*program(driver), work, uri, name, json.dumps(plan)]


def habit(
    driver: str, work: str, uri: str, name: str, place: str, options: Mapping[str, Any]
) -> list[str]:  # fmt: skip
    """Return the command of an application NAME of mongo_habits on PLACE; DRIVER: pymongo, or node for some works."""
    started = clients.python_command("mongo_habits")
    if driver == "node":
        started = ["node", str(fetched(mongo.NODE) / "habits.js")]
    return [*started, work, uri, name, json.dumps({"place": place, "seconds": 20, **options})]


def practice(
    driver: str, work: str, uri: str, name: str, place: str, options: Mapping[str, Any]
) -> list[str]:  # fmt: skip
    """Return the command of an application NAME of mongo_practices on PLACE; DRIVER: pymongo, node or go for some."""
    started = clients.python_command("mongo_practices")
    if driver == "node":
        started = ["node", str(fetched(mongo.NODE) / "practices.js")]
    elif driver == "go":
        started = [str(clients.BINARIES / "go_mongo_asks")]
    return [*started, work, uri, name, json.dumps({"place": place, "seconds": 20, **options})]
