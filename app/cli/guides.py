"""The pages of `wirewitness guide`: what to type where the traffic is. PORT stands for the server's port.

Lines that begin with four blanks are commands. Sources: tcpdump(1), pcap-filter(7), kafka-configs.sh of Kafka 2.4 and
later (KIP-412), the reference of `kubectl debug` and `docker run`.
"""

from __future__ import annotations

from typing import NamedTuple

from wirewitness.dissectors.carriers.tls.key_logging import WAYS


class Guide(NamedTuple):
    """One page. ports: what PORT is where nobody says; none for a page without it."""

    about: str
    ports: tuple[int, ...]
    text: str


_FILTER = """\
Capture on the server's or on a client's machine, for as long as the fault
needs to happen. Whole packets (-s 0), a ring of 20 files of 100 MB each:

    tcpdump -i any -s 0 -w /tmp/{name}.pcap -C 100 -W 20 'tcp port PORT'

Through VLANs the filter has to say so:

    tcpdump -i eth0 -s 0 -w /tmp/{name}.pcap 'tcp port PORT or (vlan and tcp port PORT)'

Begin before the clients connect if you can: what connections say first names
the client. A broker that several clients reach is best captured at the broker.
Then:

    wirewitness analyse /tmp/{name}.pcap*

or look on at once, without a file:

    wirewitness live -i any --ports PORT
"""


def _ways(*, tried: bool) -> str:
    """A command for each software, and below it what has to be known."""
    lines: list[str] = []
    for way in WAYS:
        if way.tried == tried:
            lines += [f"    {way.software:<24}{way.command}", *([" " * 8 + way.note] if way.note else [])]
    return "".join(f"{line}\n" for line in lines)


GUIDES: dict[str, Guide] = {
    "kafka": Guide(
        "capture Kafka with tcpdump",
        (9092,),
        _FILTER.format(name="kafka")
        + """
A group's commits, joins and heartbeats go to its coordinator only:

    kafka-consumer-groups.sh --bootstrap-server BROKER:PORT --describe --group GROUP --state

No root, or TLS without keys: wirewitness guide request-log.
""",
    ),
    "mqtt": Guide(
        "capture MQTT with tcpdump",
        (1883,),
        _FILTER.format(name="mqtt")
        + """
WebSocket listeners are found by what they say, whatever their port is; with
TLS (8883 as a rule): wirewitness guide keys.
""",
    ),
    "mongo": Guide(
        "capture MongoDB with tcpdump",
        (27017,),
        _FILTER.format(name="mongo")
        + """
A driver talks to all members of a replica set: capture on the client's
machine, or on every member and name all files on one command line.
""",
    ),
    "kubernetes": Guide(
        "capture in a pod",
        (9092,),
        """\
A container beside the one that is looked at, in its network (Kubernetes 1.27
and later; any image with tcpdump):

    kubectl debug -n NAMESPACE POD -i --profile=netadmin --image=nicolaka/netshoot --target=CONTAINER -- \\
        tcpdump -i any -U -s 0 -w - 'tcp port PORT' > pod.pcap

Ctrl-C ends it. A container that has tcpdump itself:

    kubectl exec -n NAMESPACE POD -c CONTAINER -- tcpdump -i any -U -s 0 -w - 'tcp port PORT' > pod.pcap

Then, or from a pipe with - for the file:

    wirewitness analyse pod.pcap

On a node, behind a service's address translation, a connection is seen twice,
with other addresses: capture in the pod where you can.
""",
    ),
    "docker": Guide(
        "capture in a container's network",
        (9092,),
        """\
From a second container in the network of the first (any image with tcpdump):

    docker run --rm --net=container:NAME --cap-add=NET_RAW --cap-add=NET_ADMIN nicolaka/netshoot \\
        tcpdump -i any -U -s 0 -w - 'tcp port PORT' > container.pcap

Ctrl-C ends it. On the host, all containers of a bridge:

    tcpdump -i docker0 -s 0 -w container.pcap 'tcp port PORT'

Then:

    wirewitness analyse container.pcap
""",
    ),
    "request-log": Guide(
        "have a Kafka broker log its requests, without root, keys or a restart",
        (9092,),
        """\
The broker's own log of requests is read like a capture. Switch it on for one
broker (here 1; Kafka 2.4 and later; it needs AlterConfigs on the cluster):

    kafka-configs.sh --bootstrap-server BROKER:PORT --alter --entity-type broker-loggers --entity-name 1 \\
        --add-config kafka.request.logger=DEBUG

Is it on?

    kafka-configs.sh --bootstrap-server BROKER:PORT --describe --entity-type broker-loggers --entity-name 1

It costs a line of about 1.6 kB for each request, of up to megabytes for some:
watch the disk. It is in kafka-request.log beside server.log, in containers on
standard output as a rule:

    wirewitness analyse kafka-request.log*
    kubectl logs -n NAMESPACE POD --timestamps | wirewitness analyse -
    tail -n +1 -F kafka-request.log | wirewitness live -r -     (as it grows)

Times have no zone: --log-zone +02:00 gives the broker's. Switch it off:

    kafka-configs.sh --bootstrap-server BROKER:PORT --alter --entity-type broker-loggers --entity-name 1 \\
        --delete-config kafka.request.logger

The lines have names, keys of transactions and more: treat them as a capture.
""",
    ),
    "keys": Guide(
        "log the keys of TLS, and read with them",
        (),
        f"""\
All clients of a Kafka broker at once, without a restart, on its machine and as
its user (PID is the broker's; the agent is extract-tls-secrets of Maven):

    java -jar extract-tls-secrets-4.0.0.jar PID /tmp/keys.log

Keys are logged from then on: connections that are open already have none, and
say so. Let their clients connect again, while the capture runs.

Or each client logs the keys of its own connections. Tried by the tests of
wirewitness:

{_ways(tried=True)}
Not tried:

{_ways(tried=False)}
Then:

    wirewitness analyse incident.pcapng --keylog /tmp/keys.log

Who has the log and the capture reads everything: delete the log afterwards.
To hand evidence on in clear text, without keys:

    wirewitness extract incident.pcapng --keylog /tmp/keys.log --finding ID --decrypted -o clear.pcapng

What a connection lacks (no key, wrong key, start not captured, start lost, cut
by snap length) is in flows:

    wirewitness table flows incident.pcapng --columns client_address,server_address,tls_decryption
""",
    ),
}
