"""Scenarios of MQTT about who does the work: workers of shared subscriptions, two copies of one program, contents."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build_mqtt import Row, connection, flow_of, publish, subscribe, to_client
from tests.analyser.engine.rules.scenarios.mqtt_clients import with_flows
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent


def worker(
    name: str,
    jobs: range,
    share: str | None = "billing",
    results: int = 10**6,
    to: str = "done/{}",
    wanted: str = "job/#",
    since: float = 5,
) -> dict[str, list[Row]]:
    """A client that gets these jobs by its filter and publishes a result for each, the first `results` of them."""
    who = {"client_id": name, "client_address": f"10.2.1.{len(name)}"}
    got = [
        to_client(20.01 + n, name, topic=wanted.replace("#", str(n)), payload_crc32=n, qos=0, message_id=f"{name}s{n}",
                  **who)
        for n in jobs
    ]  # fmt: skip
    made = [
        publish(20.1 + n, name, to.format(n), message_id=f"{name}c{n}", payload_crc32=1000 + n, **who) for n in jobs
    ]
    shared = {} if share is None else {"share_name": share, "topic_filter": f"$share/{share}/{wanted}"}
    return {
        "mqtt_connections": [connection(name, since - 5, 300, client_id=name, address=who["client_address"])],
        "mqtt_subscriptions": [subscribe(since, name, wanted, **who) | shared],
        "mqtt_publishes": [*got, *made[:results]],
    }


def team(*workers: dict[str, list[Row]], jobs: int = 60, wanted: str = "job/#") -> dict[str, list[Row]]:
    """These workers and who gives the jobs, one a second."""
    source = {"client_id": "source", "client_address": "10.2.0.7"}
    rows: dict[str, list[Row]] = {
        "mqtt_connections": [connection("source", 0, 300, client_id="source", address="10.2.0.7")],
        "mqtt_subscriptions": [],
        "mqtt_publishes": [
            publish(20 + n, "source", wanted.replace("#", str(n)), payload_crc32=n, message_id=f"j{n}", **source)
            for n in range(jobs)
        ],
    }
    for one in workers:
        for table, more in one.items():
            rows[table] = [*rows[table], *more]
    rows["mqtt_publishes"].sort(key=lambda row: row["ts"])
    return with_flows(**rows)


def shared_out(members: int = 3, jobs: int = 60, **of_last: Any) -> list[dict[str, list[Row]]]:
    """Members of one group that share the jobs; of_last: how the last one differs."""
    names = ("audit", "archive", "score-a", "score-bb")
    return [worker(names[n], range(n, jobs, members), **(of_last if n == members - 1 else {})) for n in range(members)]


def commanded(devices: int, silent_one: bool = True) -> dict[str, list[Row]]:
    """Devices that get commands on a topic with their id, and acknowledge each; the first one may not."""
    rows: list[dict[str, list[Row]]] = []
    sent: list[Row] = []
    for place in range(devices):
        name = f"device-{'abcdefgh'[place]}"
        wanted = f"cmd/{name}/#"
        rows.append(worker(name, range(12), None, 0 if silent_one and not place else 99, f"ack/{name}/{{}}", wanted))
        sent += [
            publish(20 + n, "source", wanted.replace("#", str(n)), payload_crc32=n, message_id=f"{name}j{n}",
                    client_id="source", client_address="10.2.0.7")
            for n in range(12)
        ]  # fmt: skip
    return team({"mqtt_publishes": sent}, *rows, jobs=0)


def copies(
    count: int = 30, late: float = 0.2, values: int = 1000, since: int = 0, own: int = 0, gets: bool = False
) -> list[Row]:
    """Two clients that publish the same on one topic, one each second; the second one some time later.

    values: how many different ones there are; since: from which message on the second one is there; own: so much is
    added to its values; gets: the server sends the topic to it.
    """
    second = {"client_id": "reader-green", "client_address": "10.2.0.5"}
    rows = [
        publish(10 + n, "b", "rates/eur", client_id="reader-blue", payload_crc32=n % values, message_id=f"b{n}")
        for n in range(count)
    ]
    rows += [
        publish(10 + n + late, "g", "rates/eur", payload_crc32=n % values + own, message_id=f"g{n}", **second)
        for n in range(since, count)
    ]
    if gets:
        rows.append(to_client(10.1, "g", topic="rates/eur", payload_crc32=0, **second))
    return sorted(rows, key=lambda row: row["ts"])


def readings(
    stuck: int = 30, before: int = 20, likes: int = 3, sizes: tuple[int, int] = (55, 55), repeat: int = 1,
    likes_repeat: int = 1, new_connection: bool = True, spread: int = 0,
) -> list[Row]:  # fmt: skip
    """A device whose last messages have one payload, beside likes. sizes: before and in its second half; repeat: how
    many messages in a row have one payload before; spread: by how much sizes of likes differ."""
    rows = []
    for place in range(likes + 1):
        who = {"client_id": f"meter-{'abcdefgh'[place]}", "client_address": f"10.2.3.{place}"}
        for n in range(before + 30):
            again, own = (n >= before + 30 - stuck, repeat) if not place else (False, likes_repeat)
            is_later = not place and n >= before
            rows.append(
                publish(
                    10 + n + place / 9,
                    f"m{place}{'x' if is_later and new_connection else ''}",
                    f"plant/{who['client_id']}",
                    payload_crc32=7 if again else 100 + n // own,
                    payload_bytes=sizes[is_later] if not place else sizes[0] + n % 2 * spread,
                    message_id=f"m{place}c{n}",
                    **who,
                )
            )
    return rows


def without_id(topics: tuple[str, str], likes: int = 0) -> list[Row]:
    """A client, sensor-1, that publishes on the first topic and then on the second one; likes have their id in it."""
    rows = [
        publish(10 + n + 20 * phase, f"p{phase}", topic, message_id=f"p{phase}c{n}")
        for phase, topic in enumerate(topics) for n in range(10)
    ]  # fmt: skip
    return rows + [
        publish(10 + n + place / 9, f"r{place}", f"plant/peer-{place}/temp", client_id=f"peer-{place}",
                client_address=f"10.2.3.{place}", message_id=f"r{place}c{n}")
        for place in range(likes) for n in range(10)
    ]  # fmt: skip


def at_two_servers(own: int = 0, beside: bool = False, wanted: str = "door/#", wait: int = 40) -> dict[str, list[Row]]:
    """A subscriber at port 1885, and messages of its filter at port 1883. own: messages at its own server; beside: its
    host also reads the other server."""
    test = {"server_port": 1885}
    connections = [
        connection("s", 0, 5 + wait, client_id="panel", address="10.2.0.2", **test),
        connection("r", 0, 200, client_id="archive", address="10.2.0.2" if beside else "10.2.0.3"),
        connection("p", 0, 200, client_id="source", address="10.2.0.7"),
    ]
    subscriptions = [
        subscribe(5, "s", wanted, client_id="panel", client_address="10.2.0.2", **test),
        subscribe(5, "r", wanted, client_id="archive", client_address=connections[1]["client_address"]),
    ]
    source = {"client_id": "source", "client_address": "10.2.0.7", "topic": "door/1"}
    sent = []
    for n in range(30):
        sent.append(publish(10 + n, "p", payload_crc32=n, message_id=f"pc{n}", **source))
        sent.append(to_client(10.1 + n, "r", client_id="archive", topic="door/1", payload_crc32=n, message_id=f"rs{n}"))
    sent += [
        to_client(10.2 + n, "s", client_id="panel", topic="door/1", payload_crc32=900 + n, **test) for n in range(own)
    ]
    connections[0]["publishes_from_server"], connections[1]["publishes_from_server"] = own, 30
    connections[2]["publishes_from_client"] = 30
    return with_flows(
        mqtt_connections=connections, mqtt_subscriptions=subscriptions,
        mqtt_publishes=sorted(sent, key=lambda row: row["ts"]),
    )  # fmt: skip


def away(
    left: float = 30, back: float = 50, every: float = 1, clean: bool = True, stays: bool = False, earlier: bool = False
) -> dict[str, list[Row]]:
    """Two workers that leave and come back, while jobs come. clean: their sessions end with their connections; stays:
    one of them is there all the time; earlier: somebody is connected since before the capture."""
    connections, subscriptions, sent = [], [], []
    spans: list[tuple[str, float, float, dict[str, str]]] = []
    for place, name in enumerate(("worker-a", "worker-b")):
        who = {"client_id": name, "client_address": f"10.2.1.{place}"}
        group = {"share_name": "jobs", "topic_filter": "$share/jobs/job/#"}
        times = [(2.0, 200.0)] if stays and place else [(1.0 + place, left), (back + place, 200.0)]
        for n, (begins, ends) in enumerate(times):
            flow, present = f"w{place}{n}", n > 0 and not clean
            spans.append((flow, begins + 0.3, ends, who))
            connections.append(
                connection(flow, begins, ends, who["client_address"], client_id=name, clean_start=clean,
                           session_present=present, publishes_from_server=9,
                           closed_by="client" if ends == left else None)
            )  # fmt: skip
            if not present:
                subscriptions.append(subscribe(begins + 0.2, flow, "job/#", **who) | group)
    for n in range(round(100 / every)):
        at, of_job = 10 + n * every, {"topic": f"job/{n}", "qos": 1, "handshake": "complete", "payload_crc32": n}
        sent.append(publish(at, "p", **of_job, client_id="source", client_address="10.2.0.7", message_id=f"pc{n}"))
        got = [(flow, at + 0.05, who) for flow, begins, ends, who in spans if begins < at < ends]
        if not got and not clean:
            got = [(flow, back + 1 + n / 100, who) for flow, begins, _, who in spans if begins > back][:1]
        for flow, got_at, who in got[:1]:
            sent.append(to_client(got_at, flow, **of_job, **who, message_id=f"{flow}s{n}"))
    connections.append(connection("p", 0, 200, client_id="source", address="10.2.0.7"))
    if earlier:
        connections.append(
            connection("e", 0, 200, client_id="old", address="10.2.1.9", connect_seen=False, publishes_from_server=9)
        )
    return with_flows(
        mqtt_connections=sorted(connections, key=lambda row: row["ts"]),
        mqtt_subscriptions=sorted(subscriptions, key=lambda row: row["ts"]),
        mqtt_publishes=sorted(sent, key=lambda row: row["ts"]),
    )


def kept(
    sets: int = 6, sent: int = 2, after: float = 30, serves: int = 2, values: int = 100, between: bool = False
) -> list[Row]:
    """A setpoint that is set each second, and given to subscribers some time after the last one: the value of the
    set with this number. between: another client sets the old one again."""
    rows = [
        publish(10 + n, "p", "plant/setpoint", retain=True, payload_crc32=n % values, message_id=f"pc{n}")
        for n in range(sets)
    ]
    if between:
        other = {"client_id": "control-2", "client_address": "10.2.0.8"}
        rows.append(publish(9 + sets + after / 2, "o", "plant/setpoint", retain=True, payload_crc32=sent, **other))
    rows += [
        to_client(9 + sets + after + n, "s", topic="plant/setpoint", retain=True, payload_crc32=sent % values,
                  client_id="panel", client_address="10.2.0.2")
        for n in range(serves)
    ]  # fmt: skip
    return rows


def impatient(
    messages: int = 15, again: int = 2, every: int = 1, answered: bool = True, reconnects: bool = False,
    version: str = "3.1.1",
) -> dict[str, list[Row]]:  # fmt: skip
    """A client that sends each of its messages, or each so manieth, again before it is acknowledged. reconnects: on
    another connection."""
    rows, last = [], "complete" if answered else "no_puback"
    for n in range(messages):
        copies_of = again if n % every == 0 else 0
        for place in range(copies_of + 1):
            first = None if not place or reconnects else f"pc{n}-0"
            rows.append(
                publish(10 + 3 * n + place / 2, "pq"[bool(place) and reconnects], qos=1, packet_identifier=n % 9 + 1,
                        dup=place > 0, handshake=last if place == copies_of else "resent", payload_crc32=n,
                        first_message_id=first, message_id=f"pc{n}-{place}", version=version)
            )  # fmt: skip
    connections = [connection("p", 0, 200, version=version)]
    if reconnects:
        connections.append(connection("q", 5, 200, version=version))
    return with_flows(mqtt_connections=connections, mqtt_publishes=rows)


def new_release(
    like: bool = True, asks: tuple[str, ...] = ("clean/#",), present: bool = True, gives_up: bool = False,
    messages: int = 20,
) -> dict[str, list[Row]]:  # fmt: skip
    """A client that comes back to its session and asks for another filter; like: another one gave the old one up."""
    reader, other = ({"client_id": f"reader-{n}", "client_address": f"10.2.1.{n}"} for n in "12")
    connections = [
        connection("a", 0, 10, "10.2.1.1", client_id="reader-1", clean_start=False, closed_by="client"),
        connection("b", 20, 200, "10.2.1.1", client_id="reader-1", clean_start=False, session_present=present),
        connection("o", 0, 200, "10.2.1.2", client_id="reader-2"),
    ]
    subscriptions = [subscribe(1, "a", "raw/#", **reader), *(subscribe(21, "b", one, **reader) for one in asks)]
    if gives_up:
        over = subscribe(22, "b", "raw/#", **reader)
        subscriptions.append(over | {"event": "unsubscribe", "granted_qos": None})
    if like:
        subscriptions.append(subscribe(2, "o", "raw/#", **other))
        over = subscribe(3, "o", "raw/#", **other)
        subscriptions.append(over | {"event": "unsubscribe", "granted_qos": None})
        subscriptions.append(subscribe(4, "o", "clean/#", **other))
    subscriptions.sort(key=lambda row: row["ts"])
    sent = []
    for n in range(messages):
        of_one = {"topic": "raw/1", "payload_crc32": n, "qos": 1, "handshake": "complete"}
        sent.append(publish(30 + n, "p", client_id="source", message_id=f"pc{n}", **of_one))
        if not gives_up and (present or "raw/#" in asks):
            sent.append(to_client(30.1 + n, "b", message_id=f"bs{n}", **reader, **of_one))
    connections.append(connection("p", 0, 200, client_id="source", address="10.2.0.7"))
    connections.sort(key=lambda row: row["ts"])
    return with_flows(mqtt_connections=connections, mqtt_subscriptions=subscriptions, mqtt_publishes=sent)


def says_hello(
    times: int = 5, subscribes: float = 1.0, retained: bool = False, late: int = 99, says: bool = True
) -> dict[str, list[Row]]:
    """A device that connects, publishes and gets an answer 0.1 s later; it subscribes so long after it connected, the
    first `late` times, and at once after that."""
    device, other = (
        {"client_id": name, "client_address": f"10.2.1.{n}"} for n, name in enumerate(("device", "config"))
    )
    connections, subscriptions, sent = [], [], []
    for n in range(times):
        begins, flow = 10 + 10.0 * n, f"d{n}"
        at = begins + (subscribes if n < late else 0.05)
        connections.append(
            connection(
                flow, begins, begins + 5, "10.2.1.0", client_id="device", closed_by="client", disconnected_by="client"
            )
        )
        subscriptions.append(subscribe(at, flow, "config/device", **device))
        if says:
            sent.append(publish(begins + 0.1, flow, "hello/device", payload_crc32=n, **device))
        answer = {"topic": "config/device", "payload_crc32": 100 + n, "retain": retained}
        sent.append(publish(begins + 0.2, "c", **answer, **other))
        if at < begins + 0.2:
            sent.append(to_client(begins + 0.3, flow, **answer, **device))
    connections.append(connection("c", 0, 300, "10.2.1.1", client_id="config"))
    connections.sort(key=lambda row: row["ts"])
    return with_flows(mqtt_connections=connections, mqtt_subscriptions=subscriptions, mqtt_publishes=sent)


def in_segments(segments: int, packets: int = 40, **more: Any) -> dict[str, list[Row]]:
    """A client that sends 4,000 bytes of so many packets in so many segments; the server answers with 200 bytes."""
    own = connection("a", 0, 60, client_messages=packets, server_messages=50, retransmitted_segments=0)
    counts = {"data_segments": segments + 50, "bytes_to_server": 4000, "bytes_to_client": 200}
    return {"mqtt_connections": [own], "flows": [flow_of(own, **counts) | more]}


MQTT_WORK_FIRES: list[Scenario] = [
    fires("MQT134", "warning", "a topic without its id since",
          mqtt_publishes=without_id(("plant/sensor-1/temp", "plant//temp"))),
    fires("MQT134", "warning", "never with its id, as its likes have",
          mqtt_publishes=without_id(("plant//temp", "plant//temp"), likes=4)),
    fires("MQT139", "warning", "one without $share", **team(*shared_out(), worker("extra", range(60), None))),
    fires("MQT139", "warning", "one under another name", **team(*shared_out(), worker("extra", range(60), "biling"))),
    fires("MQT140", "warning", "one of three is silent", **team(*shared_out(results=0))),
    fires("MQT140", "warning", "one of five devices acknowledges no command", **commanded(5)),
    fires("MQT141", "warning", "two copies", mqtt_publishes=copies(late=0.004)),
    fires("MQT141", "warning", "a copy that came later and is behind", mqtt_publishes=copies(since=12, late=2.4)),
    fires("MQT142", "warning", "an old payload again and again", mqtt_publishes=readings()),
    fires("MQT142", "warning", "shorter since it is back", mqtt_publishes=readings(stuck=0, sizes=(55, 46))),
    fires("MQT142", "warning", "longer since it is back", mqtt_publishes=readings(stuck=0, sizes=(46, 90))),
    fires("MQT142", "info", "a count begins anew", mqtt_publishes=readings(stuck=0, sizes=(55, 50))),
    fires("MQT143", "warning", "a segment for each byte", **in_segments(4000)),
    fires("MQT144", "warning", "alone at another port", **at_two_servers()),
    fires("MQT145", "warning", "both workers are away", **away()),
    fires("MQT146", "warning", "an old setpoint", mqtt_publishes=kept()),
    fires("MQT147", "warning", "each message three times", **impatient()),
    fires("MQT148", "warning", "a new release, and another client gave the old filter up", **new_release()),
    fires("MQT149", "warning", "it says hello first", **says_hello()),
    fires("MQT148", "info", "one filter after the other", **new_release(like=False)),
]  # fmt: skip
MQTT_WORK_NEAR_MISSES: list[Scenario] = [
    silent("MQT134", "another level without anything",
           mqtt_publishes=without_id(("plant/sensor-1/temp", "plant/sensor-1//temp/x"))),
    silent("MQT134", "a topic for all, beside those with ids",
           mqtt_publishes=without_id(("plant/temp", "plant/temp"), likes=4)),
    silent("MQT134", "another number in the topic", mqtt_publishes=without_id(("plant/1/temp", "plant/2/temp"))),
    silent("MQT139", "an archive that publishes nothing", **team(*shared_out(), worker("extra", range(60), None, 0))),
    silent("MQT139", "another program, which publishes elsewhere",
           **team(*shared_out(), worker("extra", range(60), None, to="paid/{}"))),
    silent("MQT139", "one that came late", **team(*shared_out(), worker("extra", range(50, 60), None, since=69.5))),
    silent("MQT139", "two groups of two", **team(*shared_out(2), worker("extra", range(0, 60, 2), "other"),
                                                 worker("extra-2", range(1, 60, 2), "other"))),
    silent("MQT139", "a group of one, and nobody knows who is right",
           **team(worker("audit", range(60)), worker("extra", range(60), None))),
    silent("MQT140", "all work", **team(*shared_out())),
    silent("MQT140", "none publishes", **team(*(worker(name, range(n, 60, 3), results=0)
                                                for n, name in enumerate(("audit", "archive", "score-a"))))),
    silent("MQT140", "it published some", **team(*shared_out(results=3))),
    silent("MQT140", "it got few", **team(*shared_out(results=0, jobs=24), jobs=24)),
    silent("MQT140", "an archive with the same filter", **team(worker("audit", range(60), None),
                                                               worker("score-a", range(60), None),
                                                               worker("extra", range(60), None, 0))),
    silent("MQT140", "three devices are too few", **commanded(4)),
    silent("MQT140", "all devices acknowledge", **commanded(5, silent_one=False)),
    silent("MQT141", "values of their own", mqtt_publishes=copies(own=5000, late=0.004)),
    silent("MQT141", "values that return", mqtt_publishes=copies(values=8, late=0.004)),
    silent("MQT141", "two that count, and began nearly together", mqtt_publishes=copies()),
    silent("MQT141", "few", mqtt_publishes=copies(8, late=0.004)),
    silent("MQT141", "counters that began at other times", mqtt_publishes=copies(late=15)),
    silent("MQT141", "it gets them from the server", mqtt_publishes=copies(gets=True, late=0.004)),
    silent("MQT142", "none is stuck", mqtt_publishes=readings(stuck=0)),
    silent("MQT142", "a value that returned before", mqtt_publishes=readings(repeat=2)),
    silent("MQT142", "likes that repeat, too", mqtt_publishes=readings(likes_repeat=2)),
    silent("MQT142", "no likes", mqtt_publishes=readings(likes=0)),
    silent("MQT142", "a few at the end", mqtt_publishes=readings(stuck=6)),
    silent("MQT142", "shorter on one connection",
           mqtt_publishes=readings(stuck=0, sizes=(55, 46), new_connection=False)),
    silent("MQT142", "one digit less", mqtt_publishes=readings(stuck=0, sizes=(55, 53))),
    silent("MQT142", "likes of many sizes", mqtt_publishes=readings(stuck=0, sizes=(55, 46), spread=5)),
    silent("MQT144", "its own server sends some", **at_two_servers(own=2)),
    silent("MQT144", "its host reads both servers", **at_two_servers(beside=True)),
    silent("MQT144", "it watches all", **at_two_servers(wanted="#")),
    silent("MQT144", "it left soon", **at_two_servers(wait=12)),
    silent("MQT149", "it subscribes first", **says_hello(subscribes=0.05)),
    silent("MQT149", "the answer is retained", **says_hello(retained=True)),
    silent("MQT149", "twice only", **says_hello(2)),
    silent("MQT149", "three times of eight", **says_hello(8, late=3)),
    silent("MQT149", "it said nothing, so nobody answered", **says_hello(says=False)),
    silent("MQT148", "it asks for both", **new_release(asks=("clean/#", "raw/#"))),
    silent("MQT148", "it gives the old one up", **new_release(gives_up=True)),
    silent("MQT148", "few messages", **new_release(messages=4)),
    silent("MQT147", "few of many", **impatient(60, 1, 5)),
    silent("MQT147", "six messages", **impatient(6, 1)),
    silent("MQT147", "after a reconnect", **impatient(again=1, reconnects=True)),
    silent("MQT146", "the last one", mqtt_publishes=kept(sent=5)),
    silent("MQT146", "just now set", mqtt_publishes=kept(after=2)),
    silent("MQT146", "a state that returns", mqtt_publishes=kept(values=2, sent=0)),
    silent("MQT146", "another client set it again", mqtt_publishes=kept(between=True)),
    silent("MQT146", "a value that nobody set here", mqtt_publishes=kept(sent=50)),
    silent("MQT145", "one of them stays", **away(stays=True)),
    silent("MQT145", "their sessions are kept", **away(clean=False)),
    silent("MQT145", "nothing came meanwhile", **away(every=25)),
    silent("MQT145", "they are back at once", **away(back=32)),
    silent("MQT145", "somebody may have subscribed before the capture", **away(earlier=True)),
    silent("MQT143", "a segment for each packet", **in_segments(40)),
    silent("MQT143", "small packets", **in_segments(1000, 1000)),
    silent("MQT143", "large packets in large segments", **in_segments(1000, bytes_to_server=1_400_000)),
]  # fmt: skip
