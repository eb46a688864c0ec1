"""Which side a finding's sentence blames: the client, the server, or the network between the two.

In: a sentence, a truth. Out: sides. Only words that say a side outright count; of alternatives ("lost on the way, or
the host was gone") one that is right suffices. A sentence without such words blames no side.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

CLIENT, SERVER, NETWORK = "client", "server", "network"
SIDES = (CLIENT, SERVER, NETWORK)
# Words of sentences and whom they blame; a group of the pattern is the side itself.
_WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"the network loses packets", (NETWORK,)),
    (r"was dropped in between", (NETWORK,)),
    (r"(?:they were|it was) lost on the way, or the host was gone", (NETWORK, SERVER)),
    (r"the others were lost on the way", (NETWORK,)),
    (r"the path was dead or the host gone", (NETWORK, SERVER)),
    (r"it was cut off from the network, or its host was gone", (NETWORK, CLIENT)),
    (r"[Ii]ts process stood still, or the way to it did", (SERVER, NETWORK)),
    (r"re(?:sponded|plied) to nobody", (SERVER,)),
    (r"so the process did not re(?:spond|ply)", (SERVER,)),
    (r"the path was dead or the client gone", (NETWORK, CLIENT)),
    (r"the client has them and sent no MQTT acknowledgement", (CLIENT,)),
    (r"The server \S+ sent PINGRESP late|No PINGRESP of the server", (SERVER,)),
    (r"no request followed: its process stood still, not the network", (CLIENT,)),
    (r"The (client|server) of the connection between .+ advertised a zero window", ()),
    (r"filled the receive window of the (client|server)", ()),
    (r"[Tt]he subscriber advertised a zero window: it does not read", (CLIENT,)),
    (r"[Tt]he subscriber had left .+ (?:unfinished in the QoS 2 handshake|unacknowledged)", (CLIENT,)),
    (r"[Tt]he subscriber takes .+ to acknowledge a message", (CLIENT,)),
    (r"makes a client for each request", (CLIENT,)),
    (r"requests wait in the application for a free connection", (CLIENT,)),
)
BLAMES = tuple((re.compile(words), sides) for words, sides in _WORDS)


def blamed(sentence: str) -> set[str]:
    """Return the sides that a sentence blames; empty where it blames none."""
    found: set[str] = set()
    for words, sides in BLAMES:
        if match := words.search(sentence):
            found.update(sides or match.groups())
    return found


def guilty(truth: Mapping[str, Any]) -> set[str]:
    """Return the sides that are to blame: those the truth says, else the culprit's; empty where it does not tell."""
    culprit = truth["culprit"]
    if truth.get("sides"):
        return set(truth["sides"])
    clients = any(culprit.get(key) for key in ("client_id", "address", "clients", "any"))
    return {side for side, there in ((CLIENT, clients), (SERVER, culprit.get("server"))) if there}


def wrong_side(truth: Mapping[str, Any], sentence: str) -> str | None:
    """Return why a sentence blames the wrong side; None: it does not, or nobody knows."""
    said, right = blamed(sentence), guilty(truth)
    if truth["healthy"] or not said or not right or said & right:
        return None
    return f"blames the {' or '.join(sorted(said))}, not the {' or '.join(sorted(right))}"
