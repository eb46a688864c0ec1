"""What a report is worth for one incident.

In: the truth and what the report says, in its order. Out: a Verdict.

- A finding names the culprit when its code is one of those expected and it says the group, the client (client id,
  address or a member id; both of them where two clients are to blame, any where the fault goes round), the broker, the
  partition, the transactional id, as far as the truth has them.
- named first: the first finding does. named: another one does. partly: one of an expected code says the group or the
  topic, not who. misled: none of these, and the first finding above info has a code that is no consequence.
  missed: none of these. silent and false alarm are the two ways of a healthy run.
- Where the truth has patterns instead of codes, a finding names the culprit that fits all of them, and a wrong
  accusation is one above info that fits a pattern of what must not be said, or says who has no part in the incident.
- A wrong accusation is a finding above info whose code is neither expected nor a consequence, or that says a client,
  an address or a group that has no part in the incident. Findings about the capture itself (CAP) accuse nobody.
- The first finding, where it is above info, is a wrong accusation, too, when its sentence blames another side than the
  one that did it: the client, the server, the network (`sides.py`). Then the report is misled, whoever it names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.lab.incidents import told
from tests.lab.incidents.sides import wrong_side

ADDRESS = re.compile(r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b")


class Said(NamedTuple):
    """A finding: all its words and numbers as one text."""

    code: str
    severity: str
    text: str
    sentence: str


class Verdict(NamedTuple):
    """How it came out."""

    name: str
    fault: str
    variant: str | None
    result: str
    codes: list[str]  # of all findings, in order
    above_info: list[str]
    wrong: list[str]  # CODE: why
    expected: list[str]
    right: list[str]  # codes above info that accuse nobody wrongly


def says(text: str, word: str) -> bool:
    """Whether TEXT has WORD, not as a part of a longer name."""
    return re.search(rf"(?<![\w.-]){re.escape(word)}(?![\w-]|\.\w)", text) is not None


def ways_to_name(truth: Mapping[str, Any], client: Mapping[str, Any]) -> list[str]:
    """Return the words that name a client: client id, address, its member ids."""
    words = [client[key] for key in ("client_id", "address") if client.get(key)]
    who = f"{client.get('client_id')}@{client.get('address')}"
    for members in truth.get("member_ids", {}).values():
        words += members.get(who, [])
    return words


def culprits(truth: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the clients that are to blame."""
    culprit = truth["culprit"]
    alone = [culprit] if any(culprit.get(key) for key in ("client_id", "address")) else []
    return culprit.get("clients") or alone


def says_partition(text: str, culprit: Mapping[str, Any]) -> bool:
    """Whether the partition is said, if the truth has one."""
    topic, number = culprit.get("topic"), culprit.get("partition")
    if topic is None or number is None:
        return True
    return says(text, f"{topic}-{number}") or (says(text, topic) and f'"partition": {number}' in text)


def says_server(text: str, culprit: Mapping[str, Any]) -> bool:
    """Whether the broker is said, by address or number, if the truth has one."""
    server = culprit.get("server")
    if not server:
        return True
    words = (server, server.rpartition(":")[0], f"broker {culprit.get('node')}", f"node {culprit.get('node')}")
    return any(says(text, word) for word in words)


def names(truth: Mapping[str, Any], said: Said) -> bool:
    """Whether a finding names the culprit."""
    if "must_say" in truth:
        return all(told.fits(pattern, said.text) for pattern in truth["must_say"])
    culprit = truth["culprit"]
    exact = [culprit[key] for key in ("group", "transactional_id") if culprit.get(key)]
    exact = [
        word for word in exact if word != culprit.get("group") or word in truth["member_ids"]
    ]  # seen by the broker
    people = [ways_to_name(truth, one) for one in culprits(truth)]
    if culprit.get("any"):
        people = [[word for one in culprit["any"] for word in ways_to_name(truth, one)]]
    return (
        said.code in truth["expected"]
        and all(says(said.text, word) for word in exact)
        and all(any(says(said.text, word) for word in ways) for ways in people)
        and says_partition(said.text, culprit)
        and says_server(said.text, culprit)
    )


def hints(truth: Mapping[str, Any], said: Said) -> bool:
    """Whether a finding of an expected code says at least the group, topic or client."""
    culprit = truth["culprit"]
    words = [culprit[key] for key in ("group", "topic", "transactional_id") if culprit.get(key)]
    for client in culprits(truth):
        words += ways_to_name(truth, client)
    return said.code in truth["expected"] and any(says(said.text, word) for word in words if isinstance(word, str))


def strangers(truth: Mapping[str, Any], text: str) -> list[str]:
    """Return the clients, addresses and groups in TEXT that have no part in the incident."""
    affected = truth["affected"]
    known_clients = {tuple(one.rsplit("@", 1)) for one in truth["facts"]["broker"]["clients"]}
    clients = [*affected["clients"], *culprits(truth)]
    own_ids = {one.get("client_id") for one in clients} | {None}
    own_addresses = {one.get("address") for one in clients}
    groups = {*affected["groups"], truth["culprit"].get("group")}
    strange = [f"group {one}" for one in truth.get("member_ids", {}) if one not in groups and says(text, one)]
    if truth.get("cluster_wide"):
        return []  # all clients of the cluster feel it
    strange += [
        f"client {one}" for one, _ in sorted(known_clients) if one not in own_ids and one != "None" and says(text, one)
    ]
    at_clients = {address for _, address in known_clients}
    return strange + [
        f"address {one}" for one in sorted(set(ADDRESS.findall(text)) & at_clients) if one not in own_addresses
    ]


def wrong_with(truth: Mapping[str, Any], said: Said) -> str | None:
    """Return why a finding above info is a wrong accusation; None: it is none."""
    if said.code.startswith("CAP"):
        return None
    if truth["healthy"]:
        return None if said.code in truth["allowed"] else f"{said.code} in a healthy run: {said.sentence}"
    if "must_say" in truth:
        never = [f"says {one}" for one in truth["must_not_say"] if told.fits(one, said.text)]
        strange = [*never, *strangers(truth, said.text)]
        return f"{said.code} {', '.join(strange[:3])}: {said.sentence}" if strange else None
    if said.code not in truth["expected"] and said.code not in truth["allowed"]:
        return f"{said.code} is no consequence: {said.sentence}"
    strange = strangers(truth, said.text)
    return f"{said.code} says {', '.join(strange[:3])}: {said.sentence}" if strange else None


def told_first(said: Sequence[Said]) -> Said | None:
    """Return the finding that people read first: that about the capture itself is none."""
    return next((one for one in said if not one.code.startswith("CAP")), None)


def first_wrong_side(truth: Mapping[str, Any], said: Sequence[Said]) -> str | None:
    """Return why the first finding blames the wrong side; None: it does not, or is info."""
    first = told_first(said)
    why = wrong_side(truth, first.sentence) if first is not None and first.severity != "info" else None
    return None if first is None or why is None else f"{first.code} {why}: {first.sentence}"


def result(truth: Mapping[str, Any], said: Sequence[Said], wrong: Sequence[str]) -> str:
    """Return how it came out, in a word."""
    told = [one for one in said if not one.code.startswith("CAP")]
    if truth["healthy"]:
        return "false alarm" if wrong else "silent"
    if first_wrong_side(truth, said):
        return "misled"
    if told and names(truth, told[0]):
        return "named first"
    if any(names(truth, one) for one in told):
        return "named"
    if any(hints(truth, one) for one in told):
        return "partly"
    first = next((one for one in told if one.severity != "info"), None)
    return "misled" if first is not None and wrong_with(truth, first) else "missed"


def verdict(name: str, truth: Mapping[str, Any], said: Sequence[Said]) -> Verdict:
    """Judge what was SAID of an incident."""
    loud = [one for one in said if one.severity != "info"]
    reasons = [(one, wrong_with(truth, one)) for one in loud]
    side, first = first_wrong_side(truth, said), told_first(said)
    reasons = [(one, reason or (side if one is first else None)) for one, reason in reasons]
    wrong = [reason for _, reason in reasons if reason]
    right = [one.code for one, reason in reasons if not reason and not one.code.startswith("CAP")]
    return Verdict(name, truth["fault"], truth.get("variant"), result(truth, said, wrong), [one.code for one in said],
                   [one.code for one in loud], wrong, list(truth["expected"]), right)  # fmt: skip
