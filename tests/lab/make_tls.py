"""Make the samples of TLS again: `python -m tests.lab.make_tls [NAME...]`.

In: names of samples, none for all. Out: sample_pcaps/tls/NAME.pcapng, captures of real servers and clients with the
secrets that these logged in them (a decryption-secrets block), and sample_pcaps/tls/MANIFEST.toml. Exit status as
`make`.
"""

from __future__ import annotations

import hashlib
import re
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.lab import clients, make, prerequisites, tls_world
from tests.lab.kafka import version
from tests.lab.processes import LabError, ending_on_signals, run
from tests.lab.tls_world import MONGO_TLS, MQTT_TLS, MUTUAL_PORT, SSL_PORT, World

FOLDER = make.SAMPLES / "tls"
MANIFEST = FOLDER / "MANIFEST.toml"
HEAD = """\
# Captures of TLS with the secrets of their connections in them, as one of the sides logged them and editcap put them
# there; certificates and keys were made for the run and are gone. Made by python -m tests.lab.make_tls, which also
# writes this file. Facts come from what the clients printed and from the server's own log, never from this project.

"""


class Work(NamedTuple):
    """What one client does. own: which certificate it has. done: it comes to its end."""

    library: str
    words: Mapping[str, str] = {}
    own: str | None = None
    done: bool = True


class Sample(NamedTuple):
    """port: where all clients go. by_server: not the clients log their keys, but the server."""

    shows: str
    server: str
    port: int
    clients: tuple[str, ...]
    works: tuple[Work, ...]
    expected: tuple[str, ...]
    by_server: bool = False


KAFKA_PYTHON = clients.python_pin("kafka-python")
SAMPLES = {
    "kafka_tls": Sample(
        "a group that produces, reads and commits over TLS 1.3, then over TLS 1.2",
        f"Apache Kafka {version()}", SSL_PORT, (KAFKA_PYTHON,),
        (Work("kafka-python", {"version": "1.3"}), Work("kafka-python", {"version": "1.2"})), (),
    ),
    "kafka_mutual_tls_failed": Sample(
        "a listener that wants certificates of its clients: one with a good one, one of an issuer that is not trusted, "
        "and two without",
        f"Apache Kafka {version()}", MUTUAL_PORT, (KAFKA_PYTHON, "Python's ssl"),
        (
            Work("kafka-python", own="client"),
            Work("handshake", {"version": "1.3"}, "stranger", False),
            Work("handshake", {"version": "1.3"}, None, False),
            Work("handshake", {"version": "1.2"}, None, False),
        ), ("TLS101", "TLS107"),
    ),
    "mqtt_tls": Sample(
        "a meter that publishes and subscribes over TLS 1.3", "Eclipse Mosquitto", MQTT_TLS,
        (clients.python_pin("paho-mqtt"),), (Work("paho"),), (),
    ),
    "mongo_tls": Sample(
        "a driver that writes two documents and reads them over TLS 1.3, whose keys the server logged",
        "test server of this project (tests/support/mongo_server) behind a front that ends TLS (tests/lab/tls_front)",
        MONGO_TLS,
        (clients.python_pin("pymongo"),), (Work("pymongo"),), (), by_server=True,
    ),
}  # fmt: skip


def made(world: World, name: str, sample: Sample) -> dict[str, Any]:
    """Run the clients, put the capture in place and return its entry; LabError where it is not as wanted."""
    keylog = world.front_keys if sample.by_server else world.directory / f"{name}.keys"
    commands = []
    for work in sample.works:
        own = {} if work.own is None else getattr(world.made, work.own)._asdict()
        words = {"cert": own["certificate"], "key": own["key"]} if own else {}
        commands.append(
            world.python(
                work.library, sample.port, ca=world.made.authority.path, keylog=str(keylog), **words, **work.words
            )
        )
    log = world.directory / "kafka" / "server.log"
    before = log.stat().st_size
    capture, processes = world.captured(*commands)
    said = [process.events()[-1] for process in processes]
    for work, event in zip(sample.works, said, strict=True):
        if (event["event"] == "done") != work.done:
            raise LabError(f"{name}, {work.library}: {event}")
    refused = re.findall(r"Failed authentication with .*SSL handshake failed", log.read_text()[before:])
    target = FOLDER / f"{name}.pcapng"
    run(["editcap", "--inject-secrets", f"tls,{keylog}", str(capture), str(target)])
    target.chmod(0o644)
    content = target.read_bytes()
    return {
        "file": target.name,
        "shows": sample.shows,
        "made_by": "python -m tests.lab.make_tls",
        "server": sample.server,
        "clients": list(sample.clients),
        "packets": make.count_packets(target),
        "size_bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "expected_detectors": list(sample.expected),
        "facts": {
            "port": sample.port,
            "clients_done": sum(event["event"] == "done" for event in said),
            "client_said": [event["what"] for event in said],
            "broker_refused": len(refused),
        },
    }


def main() -> int:
    """Make all and return the exit status."""
    import tomli_w  # only the making of samples needs it

    if prerequisites.find_missing():
        return prerequisites.main()
    wanted = sys.argv[1:] or list(SAMPLES)
    FOLDER.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="wirewitness-lab-"))
    try:
        with ending_on_signals(), tls_world.running(directory) as world:
            fresh = {f"{name}.pcapng": made(world, name, SAMPLES[name]) for name in wanted}
    except LabError as error:
        print(f"{error}\nlogs are in {directory}", file=sys.stderr)
        return 3
    known = (
        {entry["file"]: entry for entry in tomllib.loads(MANIFEST.read_text())["sample"]} if MANIFEST.exists() else {}
    )
    entries = [entry for name in SAMPLES if (entry := (known | fresh).get(f"{name}.pcapng")) is not None]
    MANIFEST.write_text(HEAD + tomli_w.dumps({"sample": entries}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
