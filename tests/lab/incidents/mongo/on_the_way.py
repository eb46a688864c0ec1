"""What lies between: proxies that cut or choose badly, a tunnel, a certificate; a client or a set that stands still."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.lab import firewall, slow_link
from tests.lab.clients import python_command
from tests.lab.incidents.mongo.faults import failing
from tests.lab.incidents.mongo.incident import Incident
from tests.lab.incidents.mongo.no_effect import EITHER, beside
from tests.lab.incidents.mongo.slow_parts import NETWORK, SLOW
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.net import Host, in_namespace
from tests.support.tls_certificates import Authority

PROXY_PORT, TLS_PORT, DEAD_PORT = 27019, 27020, 27117
LOAD_LENGTH, LARGE = 128, 1200  # of classic BPF; bytes of a frame that a tunnel on the way swallows
ENDS = ["clos", "FIN", "reset", "RST", "end", "new connection", "connection", "again", "without (an )?(answer|reply)"]
OLD_TLS = """\
openssl_conf = conf
[conf]
ssl_conf = ssl
[ssl]
system_default = tls
[tls]
MaxProtocol = TLSv1.2
"""


def lifetime_proxy(it: Incident) -> None:
    """A proxy ends each connection after 4 s, however busy it is: queries fail in the middle, again and again."""
    place, app = it.place(), it.names.client()
    good = beside(it, "two", place, fill=60)
    through = f"{it.address}:{PROXY_PORT}"
    it.start("server", *python_command("proxy", through, it.endpoint, "4")).wait_for_event("listening")
    client = {"retryReads": "false"}
    it.habit("one", "asks", app, to=through, place=place, driver=it.rng.choice(EITHER), client=client, pause_s=0.02,
             seconds=32).finish(90)  # fmt: skip
    it.ask(
        "Q6",
        "a proxy that ends busy connections",
        {"server": through, "any": [it.who("one", app)]},
        [saying(called(app, it.hosts["one"].address, through), ENDS)],
        [accusing(good)],
    )


def dead_target(it: Incident) -> None:
    """A balancer has two targets, one of which is down: each second connection is closed as soon as it is made."""
    place, app = it.place(), it.names.client()
    good = beside(it, "two", place, fill=60)
    through = f"{it.address}:{PROXY_PORT}"
    targets = f"{it.endpoint},{it.address}:{DEAD_PORT}"
    it.start("server", *python_command("proxy", through, targets, "0")).wait_for_event("listening")
    client = {"maxIdleTimeMS": 300, "retryReads": "false", "serverSelectionTimeoutMS": 3000}
    it.habit("one", "asks", app, to=through, place=place, driver="node", client=client, pause_s=0.7, seconds=32).finish(
        90
    )
    it.ask(
        "Q6",
        "a balancer with a target that is down",
        {"server": through, "any": [it.who("one", app)]},
        [saying(called(app, it.hosts["one"].address, through), ENDS)],
        [accusing(good)],
    )


@contextmanager
def swallowing_large(host: Host) -> Iterator[None]:
    """Drop all large packets that come to a host during the block, and tell nobody."""
    steps = [(LOAD_LENGTH, 0, None, None), (firewall.IF_AT_LEAST, LARGE, firewall.DROP, firewall.PASS)]
    in_namespace(host.namespace, "tc", "qdisc", "add", "dev", "eth0", "clsact")
    words = ("ingress", "bpf", "da", "bytecode", firewall.bytecode(steps))
    in_namespace(host.namespace, "tc", "filter", "add", "dev", "eth0", *words)
    try:
        yield
    finally:
        in_namespace(host.namespace, "tc", "qdisc", "del", "dev", "eth0", "clsact")


def large_answers_swallowed(it: Incident) -> None:
    """A tunnel before one host swallows large packets: small answers come, the large one never does."""
    place, app, good = it.place(), it.names.client(), it.names.client()
    first = it.practice("two", "reads_large", good, place=place, fill=60, pause_s=0.2, seconds=44)
    first.wait_for_event("ready")
    it.seconds(1, 2)
    client = {"socketTimeoutMS": 5000, "retryReads": "false"}
    with swallowing_large(it.hosts["one"]):
        it.practice("one", "reads_large", app, place=place, client=client, pause_s=0.3, seconds=34).finish(60)
    first.finish(60)
    it.ask(
        "Q6",
        "large answers that are swallowed",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["MTU", "large", *NETWORK])],
        [accusing(good)],
        sides=("network",),
    )


def unknown_ca(it: Incident) -> None:
    """An application does not know the authority of the server's certificate: it ends each TLS handshake."""
    place, app, good = it.place(), it.names.client(), it.names.client()
    ours, other = Authority("Lab CA", it.directory / "ours"), Authority("Other CA", it.directory / "other")
    paths = ours.issue("mongo", [it.address])
    settings = it.directory / "openssl.cnf"
    settings.write_text(OLD_TLS)
    through = f"{it.address}:{TLS_PORT}"
    words = (through, it.endpoint, f"cert={paths.certificate}", f"key={paths.key}")
    front = it.start("server", "env", f"OPENSSL_CONF={settings}", sys.executable, "-m", "tests.lab.tls_front", *words)
    front.wait_for_event("listening")
    fine = {"tls": "true", "tlsCAFile": ours.path}
    first = it.habit("two", "asks", good, to=through, place=place, client=fine, fill=60, pause_s=0.3, seconds=40)
    first.wait_for_event("ready")
    bad = {"tls": "true", "tlsCAFile": other.path, "serverSelectionTimeoutMS": 2500}
    it.practice("one", "asks_text", app, to=through, place=place, client=bad, pause_s=0.5, seconds=30).finish(60)
    first.finish(60)
    it.ask(
        "Q4",
        "a certificate that an application does not trust",
        {"server": through, "any": [it.who("one", app)]},
        [
            saying(
                called(it.hosts["one"].address, app), ["TLS", "certificate", "handshake", "alert", "trust", "CA", *ENDS]
            )
        ],
        [accusing(good)],
    )


def client_stands_still(it: Incident) -> None:
    """An export stands still for seconds again and again, with its answers half read; the server waits for it."""
    place, app = it.place(), it.names.client()
    good = beside(it, "two", it.place(), fill=60)
    # What the kernel takes for a program that does not read is little, as on many machines.
    in_namespace(it.hosts["one"].namespace, "sysctl", "-qw", "net.ipv4.tcp_rmem=4096 65536 131072")
    it.practice("one", "dumps", app, place=place, fill=1200, size=3000, noise=True, batch=400, seconds=0.1).finish(60)
    with slow_link.gets_slowly(it.hosts, "one", 6000):
        first = it.practice("one", "dumps", app, place=place, batch=400, seconds=30)
        first.wait_for_event("ready")
        for _ in range(4):
            it.seconds(1.6, 2.6)
            first.freeze()
            it.seconds(4, 5)
            first.thaw()
        first.finish(60)
    wordings = ["window", "stood still", "stands still", "stall", "paus", "not read", "does not read", *SLOW]
    it.ask(
        "Q7",
        "an application that stands still",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
        [accusing(good)],
        sides=("client",),
    )


def writes_locked(it: Incident) -> None:
    """An operator has locked the server for a backup: for ten seconds no write is answered, and all reads are."""
    names = [it.names.client() for _ in range(4)]
    works = [
        it.practice(host, work, app, driver=driver, concern={}, fill=50, pause_s=0.2, seconds=32)
        for host, app, driver, work in zip(
            ("one", "two", "three", "site"), names, ("node", "go", "pymongo", "go"),
            ("inserts", "adds", "concerned", "asks"), strict=True,
        )
    ]  # fmt: skip
    it.seconds(9, 11)
    locked = failing("insert", blockConnection=True, blockTimeMS=10_000)
    locked["data"]["failCommands"] = ["insert", "update", "delete", "findAndModify"]
    it.order(locked)
    it.seconds(5, 6)  # the order takes its time, too, and what waits already waits to its end
    it.order({"configureFailPoint": "failCommand", "mode": "off"})
    for one in works:
        one.finish(90)
    wordings = [*SLOW, "unanswered", "no answer", "stood still", "lock", "all", "at the same time", "insert", "write"]
    it.ask("Q7", "writes that are locked", {"server": it.endpoint}, [saying(called(it.endpoint, it.address), wordings)])
    it.truth["cluster_wide"] = True


def no_primary_for_long(it: Incident) -> None:
    """A set has no primary for 22 s: writers wait and give up, who reads from a secondary goes on."""
    names = [it.names.client() for _ in range(3)]
    away = {"readPreference": "secondaryPreferred"}
    it.habit("site", "asks", it.names.client(), fill=50, client=away, pause_s=0.3, seconds=60).wait_for_event("ready")
    client = {"serverSelectionTimeoutMS": 3000}
    works = [
        it.practice(host, work, app, driver=driver, client=client, concern={}, fill=50, pause_s=0.2, seconds=42)
        for host, app, driver, work in zip(
            ("one", "two", "three"), names, ("node", "go", "pymongo"), ("inserts", "adds", "concerned"), strict=True
        )
    ]
    it.seconds(8, 10)
    it.order({"replSetStepDown": 22})
    for one in works:
        one.finish(90)
    wordings = ["primary", "step", "election", "10107", "NotWritablePrimary", "not (a )?primary", "no writ", "fail"]
    it.ask(
        "Q6", "a set without a primary", {"server": it.endpoint}, [saying(called(it.endpoint, it.address), wordings)]
    )
    it.truth["cluster_wide"] = True


FAULTS: tuple[Callable[[Incident], None], ...] = (
    lifetime_proxy,
    dead_target,
    large_answers_swallowed,
    unknown_ca,
    client_stands_still,
    writes_locked,
    no_primary_for_long,
)
