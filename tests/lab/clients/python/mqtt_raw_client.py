"""A hand-written MQTT client that breaks the rules, since no library can be brought to it: one connection per rule.

In: host, port, user name, password and names of rules (none: all), each with =CLIENT_ID if that is not the rule's name.
Out: a JSON line per rule: what the broker answered until it closed. Each connection but one begins with a CONNECT.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from typing import NamedTuple

ANSWER_S = 0.3
IN_FLIGHT = 12  # more than the broker allows
TOO_LARGE = 4000


class Breach(NamedTuple):
    """A broken rule: its name, which is the client id, the protocol level and the packets after CONNECT."""

    name: str
    version: int
    packets: tuple[bytes, ...]
    connects: bool = True


def variable(number: int) -> bytes:
    """Encode a variable byte integer."""
    out = bytearray()
    while True:
        number, digit = divmod(number, 128)
        out.append(digit | (128 if number else 0))
        if not number:
            return bytes(out)


def text(value: str | bytes) -> bytes:
    """Encode a string with its length."""
    raw = value.encode() if isinstance(value, str) else value
    return len(raw).to_bytes(2, "big") + raw


def packet(first: int, body: bytes) -> bytes:
    """Return a packet with its fixed header."""
    return bytes([first]) + variable(len(body)) + body


def connect(version: int, client_id: str, user: str, password: str, flags: int = 0xC2) -> bytes:
    """Return a CONNECT with a login."""
    properties = b"\0" if version == 5 else b""
    head = text("MQTT") + bytes([version, flags]) + (60).to_bytes(2, "big") + properties
    return packet(0x10, head + text(client_id) + text(user) + text(password))


def publish(topic: str | bytes, mid: int | None, flags: int, properties: bytes | None = b"", size: int = 1) -> bytes:
    """Return a PUBLISH; properties None: 3.1.1."""
    identifier = b"" if mid is None else mid.to_bytes(2, "big")
    more = b"" if properties is None else variable(len(properties)) + properties
    return packet(0x30 | flags, text(topic) + identifier + more + b"x" * size)


def subscribe(mid: int, wanted: str, first: int = 0x82) -> bytes:
    """Return a SUBSCRIBE of 3.1.1 for QoS 0."""
    return packet(first, mid.to_bytes(2, "big") + text(wanted) + b"\0")


BREACHES = (
    Breach("not-connected", 4, (publish("rule/first", None, 0, None),), connects=False),
    Breach("connect-twice", 4, (connect(4, "connect-twice", "u", "p"),)),
    Breach("dup-with-qos-0", 4, (publish("rule/dup", None, 8, None), packet(0xC0, b""))),
    Breach("qos-3", 4, (publish("rule/qos", 1, 6, None),)),
    Breach("wildcard-in-topic", 4, (publish("rule/+", None, 0, None),)),
    Breach("bad-filter", 4, (subscribe(1, "rule/#/x"),)),
    Breach("identifier-0", 4, (publish("rule/mid", 0, 2, None),)),
    Breach("identifier-reused", 4, (publish("rule/mid", 7, 4, None), publish("rule/mid", 7, 4, None, size=9))),
    Breach("reserved-flags", 4, (subscribe(1, "rule/x", first=0x80),)),
    Breach("length-of-5-bytes", 4, (b"\x30\xff\xff\xff\xff\x01",)),
    Breach("not-utf-8", 4, (publish(b"rule/\xff\xfe", None, 0, None),)),
    Breach("in-flight", 5, tuple(publish("rule/flight", mid, 4) for mid in range(1, IN_FLIGHT + 1))),
    Breach("too-large", 5, (publish("rule/large", 1, 2, size=TOO_LARGE),)),
    Breach("alias-0", 5, (publish("rule/alias", 1, 2, b"\x23\0\0"),)),
    Breach("alias-above-maximum", 5, (publish("rule/alias", 1, 2, b"\x23\x7f\xff"),)),
    Breach("alias-unknown", 5, (publish("", 1, 2, b"\x23\0\x02"),)),
    Breach("property-twice", 5, (publish("rule/twice", 1, 2, b"\x01\0\x01\0"),)),
    Breach("property-unknown", 5, (publish("rule/property", 1, 2, b"\x7e\0"),)),
)


def read_all(connection: socket.socket) -> tuple[bytes, bool]:
    """Return what comes until nothing more does, and whether the broker closed."""
    connection.settimeout(ANSWER_S)
    got = b""
    while True:
        try:
            piece = connection.recv(4096)
        except TimeoutError:
            return got, False
        except ConnectionResetError:
            return got, True
        if not piece:
            return got, True
        got += piece


def break_rule(
    breach: Breach, client_id: str, open_connection: Callable[[], socket.socket], login: tuple[str, str]
) -> None:
    """Make a connection, break the rule on it and print what came back."""
    with open_connection() as connection:
        if breach.connects:
            connection.sendall(connect(breach.version, client_id, *login))
            read_all(connection)
        for one in breach.packets:
            connection.sendall(one)
        answer, closed = read_all(connection)
        print(
            json.dumps({"event": "breach", "name": breach.name, "answer": answer.hex(), "closed": closed}), flush=True
        )


def main() -> None:
    """Break the rules."""
    host, port, user, password, *words = sys.argv[1:]
    wanted = dict(word.split("=") if "=" in word else (word, word) for word in words)
    for breach in BREACHES:
        if not wanted or breach.name in wanted:
            client_id = wanted.get(breach.name, breach.name)
            break_rule(breach, client_id, lambda: socket.create_connection((host, int(port))), (user, password))


if __name__ == "__main__":
    main()
