"""Q4 and Q6, what stands before the server: certificates, balancers, scrapers, an address that two machines have."""

from __future__ import annotations

import time

from tests.lab.clients import mqtt, python_command
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.keep_alives import often
from tests.lab.incidents.mqtt.misfits import odd, values
from tests.lab.incidents.mqtt.told_words import CUT_OFF, REFUSED
from tests.lab.incidents.told import accusing, called, saying
from tests.support.tls_certificates import Authority

TLS_PORT, PROXY_PORT = 8883, 1884
TLS = ["TLS", "SSL", "certificate", "expire", "handshake", "alert", "version", "trust", *REFUSED, *CUT_OFF]
SECURE = """\
user root
allow_anonymous true
listener {port}
socket_domain ipv4
certfile {cert}
keyfile {key}
cafile {ca}
{more}
"""
# Takes the address of another machine, says so now and then, and connects from it.
ALSO_HERE = """
import socket, subprocess, sys, time
own, server, port = sys.argv[1:]
subprocess.run(["ip", "address", "add", own + "/24", "dev", "eth0"], check=True)
for number in range(6):
    subprocess.run(["ip", "neigh", "flush", "all"], check=True)
    try:
        socket.create_connection((server, int(port)), 1.5, (own, 0)).close()
    except OSError as error:
        print(error, flush=True)
    time.sleep(5.5)
"""


def secured(it: Incident, expires_days: float, more: str = "", authority: Authority | None = None) -> str:
    """Start a second server on the broker's host, for TLS; return its authority's file."""
    authority = authority or Authority("Plant CA", it.directory / "keys")
    paths = authority.issue("broker", [it.hosts["broker"].address], expires_days=expires_days)
    config = it.directory / "secure.conf"
    words = {"cert": paths.certificate, "key": paths.key, "ca": authority.path}
    config.write_text(SECURE.format(port=TLS_PORT, more=more, **words))
    it.start("broker", "mosquitto", "-c", str(config))
    time.sleep(1.5)
    return authority.path


@fault(Wanted(kinds=MOSQUITTO))
def certificate_expired(it: Incident) -> None:
    """The server's certificate has expired last night: its devices break off the TLS handshake, again and again."""
    topic, names = it.names.topic(), [it.names.client() for _ in range(3)]
    authority = secured(it, -0.3)
    it.subscriber("five", it.names.client(), (f"{topic}/#", 1))
    good = values(it, "four", f"{topic}/old", 80, 0.4)
    running = []
    for host, name in zip(("one", "two", "three"), names, strict=True):
        running.append(odd(it, host, "tls", name, topic, authority, port=TLS_PORT))
        it.seconds(0.3, 0.9)
    for one in running:
        one.finish(90)
        often(one.named_events("closed"), 10)
    server = f"{it.hosts['broker'].address}:{TLS_PORT}"
    addresses = [it.hosts[host].address for host in ("one", "two", "three")]
    blamed = {
        "server": server,
        "any": [it.who(host, name) for host, name in zip(("one", "two", "three"), names, strict=True)],
    }
    it.ask("Q4", "a certificate that has expired", blamed,
           [saying([*called(server), *called(*addresses), str(TLS_PORT)], TLS)],
           [accusing(good)], sides=("client", "server"))  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO))
def tls_too_old(it: Incident) -> None:
    """An operator lets the server take TLS 1.3 alone; a device of some years ago knows 1.2 and is refused for good."""
    topic, device = it.names.topic(), it.names.client()
    authority = secured(it, 200, "tls_version tlsv1.3")
    it.subscriber("five", it.names.client(), (f"{topic}/#", 1))
    good = values(it, "four", f"{topic}/old", 80, 0.4)
    words = ("-t", f"{topic}/new", "-m", "v", "-q", "1", "--cafile", authority, "-p", str(TLS_PORT))
    process = odd(it, "one", "tls", device, topic, authority, port=TLS_PORT)
    peer = it.names.client()
    for _ in range(5):
        it.tool("pub", "two", peer, *words).finish()
        it.seconds(3, 4)
    process.finish(90)
    often(process.named_events("closed"), 10)
    address = it.hosts["one"].address
    it.ask("Q4", "a version of TLS that the server does not take", {"address": address},
           [saying(called(address), TLS)], [accusing(good, it.hosts["two"].address)])  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO))
def proxy_header(it: Incident) -> None:
    """A balancer puts a line of the PROXY protocol before each connection; the server does not know it and closes."""
    topic, names = it.names.topic(), [it.names.client() for _ in range(3)]
    address = it.hosts["hub"].address
    through = f"{address}:{PROXY_PORT}"
    it.start("hub", *python_command("header_proxy", through, it.broker.endpoint)).wait_for_event("listening")
    it.subscriber("five", it.names.client(), (f"{topic}/#", 1))
    good = values(it, "four", f"{topic}/direct", 80, 0.4)
    for host, name in zip(("one", "two", "three"), names, strict=True):
        it.clients.append(it.who(host, name))
        it.clients.append(it.who("hub", name))
    for _ in range(9):
        for host, name in zip(("one", "two", "three"), names, strict=True):
            words = ("-t", f"{topic}/{name}", "-m", "v", "-q", "1", "-p", str(PROXY_PORT), "-h", address)
            it.tool("pub", host, name, *words)
        it.seconds(2.5, 3)
    wordings = [*REFUSED, *CUT_OFF, "PROXY", "not MQTT", "no MQTT", "no CONNECT", "protocol", "malformed", "garbage",
                "unknown", "before"]  # fmt: skip
    it.ask("Q4", "a balancer that speaks the PROXY protocol", {"address": address},
           [saying(called(address), wordings)], [accusing(good)], sides=("client", "network", "server"))  # fmt: skip


@fault()
def http_to_mqtt(it: Incident) -> None:
    """A metrics scraper has the wrong port in its list and asks the server for /metrics by HTTP, once a second."""
    topic = it.names.topic()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    good = values(it, "three", f"{topic}/belt", 90, 0.4)
    address = it.hosts["one"].address
    it.start("one", *python_command("http_probe", f"http://{it.broker.endpoint}/metrics"))
    it.seconds(32, 36)
    wordings = ["HTTP", "not MQTT", "no MQTT", "no CONNECT", "protocol", "malformed", "GET", "garbage", "unknown",
                *REFUSED, *CUT_OFF]  # fmt: skip
    it.ask("Q4", "HTTP to a server of MQTT", {"address": address}, [saying(called(address), wordings)],
           [accusing(good)])  # fmt: skip


@fault()
def address_twice(it: Incident) -> None:
    """A new machine has been given the address of a device: the device's connections end, again and again."""
    topic, device, good = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("four", it.names.client(), (f"{topic}/#", 1))
    settings = {"library": "paho", "clean": False, "version": 4, "keep_alive": 4, "reconnect_s": 1}
    steps = (mqtt.subscribe((f"{topic}/set", 1)), mqtt.KEEP_COMING)
    held = it.follow("one", device, *steps, **settings)
    it.follow("three", good, *steps, **settings).wait_for_event("subscribed")
    orders = [mqtt.publish(f"{topic}/set", 1, payload=f"n{n}", pause_s=0.8) for n in range(60)]
    it.follow("five", it.names.client(), *orders, mqtt.DISCONNECT)
    it.seconds(5, 6)
    address = it.hosts["one"].address
    it.start("hub", "python3", "-c", ALSO_HERE, address, *it.broker.endpoint.split(":"))
    it.seconds(38, 40)
    often(held.named_events("disconnected"), 2)
    wordings = ["RST", "reset", "MAC", "two (machines|hosts)", "address", "not (arrive|reach)", *CUT_OFF]
    it.ask("Q6", "an address that two machines have", it.who("one", device),
           [saying(called(device, address), wordings)], [accusing(good)], sides=("network", "client"))  # fmt: skip
