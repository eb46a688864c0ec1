"""What people ask about, in their words, to chains. In: words of a command line. Out: chains, the worst first.

A subject is tried in one form after the other; what fits none is refused with what is near it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any

from wirewitness.analyser.base.near_names import NearNames
from wirewitness.analyser.base.severity import severity_rank
from wirewitness.analyser.base.words import count, printable
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.questions.workloads import OWNERS, is_anybody_named
from wirewitness.reports.base.why.asking import Asking, Coverage, coverage, finding_link, name, who
from wirewitness.reports.base.why.evidence_packets import placed
from wirewitness.reports.base.why.model import Chain, NoSubject, Step
from wirewitness.reports.protocols.kafka.why.pace import last_commit
from wirewitness.reports.protocols.kafka.why.partition import (
    TESTED,
    clients_of,
    flows_of,
    is_about,
    is_healthy,
    partition_link,
    standing,
)
from wirewitness.reports.protocols.mongo.why.causes import (
    command_words,
    commonest_failure,
    no_command,
    others,
    slowest,
)
from wirewitness.reports.protocols.mqtt.why import causes as mqtt
from wirewitness.reports.protocols.mqtt.why import fates
from wirewitness.reports.protocols.mqtt.why import topic as mqtt_topic
from wirewitness.reports.protocols.mqtt.why.remarks import remarks as remarks_of
from wirewitness.reports.report.why.exchange import exchange_link, find_exchange, usual
from wirewitness.reports.report.why.walk import walk

# Who the clients of a chain are. In: chains. Out: the same, which name process, pod or host of a client where it
# stands first, as far as a capture or a file of names knows one.

_CLIENTS = f"""
    with clients as (
        select client_id as name, client_address, client_process, client_pod, client_host from exchanges
        union all
        select app_name, client_address, client_process, client_pod, client_host from mongo_commands
        where app_name is not null)
    select name, client_address, {OWNERS} as owner from clients group by all having owner is not null"""


def named(ask: Asking, chains: Sequence[Chain]) -> list[Chain]:
    """Each client with its owner, once in a chain."""
    if not is_anybody_named(ask.source):
        return list(chains)
    owners = {who(row["name"], row["client_address"]): name(row["owner"]) for row in ask.rows(_CLIENTS)}
    return [_chain(chain, owners) for chain in chains]


def _chain(chain: Chain, owners: Mapping[str, str]) -> Chain:
    naming = _Naming(owners)
    verdict = naming.sentence(chain.verdict)
    return replace(chain, verdict=verdict, steps=tuple(map(naming.step, chain.steps)))


@dataclass(slots=True)
class _Naming:
    """Names clients that were not named yet. Clients stand in sentences as `who` writes them."""

    owners: Mapping[str, str]
    done: set[str] = field(default_factory=set)

    def step(self, step: Step) -> Step:
        what = self.sentence(step.link.what)
        return replace(step, link=replace(step.link, what=what), causes=tuple(map(self.step, step.causes)))

    def sentence(self, text: str) -> str:
        return re.sub(r"\S+@[0-9A-Fa-f:.]*[0-9A-Fa-f]", self._with_owner, text)

    def _with_owner(self, found: re.Match[str]) -> str:
        client = found[0]
        if client in self.done or client not in self.owners:
            return client
        self.done.add(client)
        return f"{client} ({self.owners[client]})"


MOST_CHAINS = 5
_FINDING = re.compile(r"[0-9a-f]{16}")
_MESSAGE = re.compile(r"[0-9a-f]+-[cs]-[0-9]{1,18}")
_NEAR = 5
# Names that are compared with one that is not there.
_COMPARED = 20_000
_LONGEST_SUBJECT = 120


def answer(ask: Asking, words: Sequence[str]) -> list[Chain]:
    """Chains for the subject; more than one where it names several things. Raises NoSubject."""
    return named(ask, placed(ask, _chains(ask, words)))


def _chains(ask: Asking, words: Sequence[str]) -> Sequence[Chain]:
    said = [part for word in words for part in word.split()]
    text = " ".join(said)
    if len(said) == 1 and _FINDING.fullmatch(text):
        return [_finding(ask, text)]
    if len(said) == 1 and _MESSAGE.fullmatch(text):
        return _message(ask, text)
    command = list(said)
    if "mongo" in said:
        command.remove("mongo")
    is_command = len(said) in (3, 4) and len(command) < len(said)
    commands = _commands(ask, command) if is_command else []
    if commands:
        return commands
    stands, read_as = _partitions(ask, words, said)
    if stands:
        return _told(ask, stands, read_as)
    messages = _messages_of(ask, words, said)
    if messages:
        return messages
    raise NoSubject(no_command(ask, command) if is_command else _nothing(ask, text))


def _finding(ask: Asking, finding_id: str) -> Chain:
    every = ask.findings()
    found = next((one for one in every if one.finding_id == finding_id), None)
    if found is None:
        raise NoSubject(f"there is no finding {finding_id} here; `wirewitness findings` lists them")
    beside = tuple((f.code, f.finding_id) for f in every if f.incident_id == found.incident_id and f is not found)[
        :_NEAR
    ]
    step = walk(ask, finding_link(found))
    return Chain(f"finding {found.finding_id}", found.sentence, (step,), beside=beside)


def _message(ask: Asking, some_id: str) -> list[Chain]:
    """A publish by whom it had to reach, anything else as an exchange."""
    found = find_exchange(ask, some_id)
    if found is None:
        raise NoSubject(f"there is no exchange {some_id} here; `wirewitness table exchanges` lists them")
    reached = mqtt.deliveries_of(ask, found["exchange_id"]) if found["protocol"] == "mqtt" else []
    return [*(_delivery(ask, one) for one in reached), exchange_chain(ask, found)]


def _delivery(ask: Asking, found: Mapping[str, Any]) -> Chain:
    step = walk(ask, mqtt.delivery_link(found))
    healthy = found["status"] == "delivered"
    verdict = f"nothing is wrong: {step.link.what}" if healthy else step.link.what
    subject = f"{name(found['topic'])} for {name(found['subscriber_client_id'] or found['subscriber'])}"
    more = found["n"] - mqtt.MOST_DELIVERIES
    remarks = (f"and {count(more, 'more subscriber')} of it: table mqtt_deliveries has all",) if more > 0 else ()
    return Chain(subject, verdict, (step,), healthy, remarks=remarks)


def _messages_of(ask: Asking, words: Sequence[str], said: Sequence[str]) -> list[Chain]:
    """CLIENT TOPIC: what became of all messages on it for that client. TOPIC CLIENT is understood."""
    for parts in dict.fromkeys((tuple(words), tuple(said))):
        if len(parts) != 2:
            continue
        for client, on, turned in ((*parts, False), (*parts[::-1], True)):
            found = fates.known(ask, client, on)
            if found is not None and fates.is_known(ask, found):
                return [_topic(ask, found, turned)]
    return []


def _topic(ask: Asking, found: fates.Known, turned: bool) -> Chain:
    step = walk(ask, mqtt_topic.topic_link(ask, found))
    remarks = remarks_of(ask, found, step.link)
    if turned:
        remarks.append(f"Read as client {name(found.client)} and topic {name(found.topic)}: the client comes first.")
    subject = f"{name(found.topic)} for {name(found.client)}"
    beside = tuple((one.code, one.finding_id) for one in found.findings[:_NEAR])
    return Chain(subject, step.link.what, (step,), mqtt_topic.is_healthy(step.link), beside, tuple(remarks))


def _commands(ask: Asking, said: Sequence[str]) -> list[Chain]:
    """CLIENT COMMAND [COLLECTION], in any order: the failure that came most often, and the slowest of these;
    none where there is no such command."""
    for words in permutations(said):
        chains = [chain for find in (commonest_failure, slowest) if (chain := _command(ask, find(ask, *words)))]
        if chains:
            read_as = () if words == tuple(said) else (f"read as CLIENT COMMAND: {' '.join(map(name, words))}",)
            return [replace(chain, remarks=(*chain.remarks, *read_as)) for chain in chains]
    return []


def _command(ask: Asking, found: Mapping[str, Any] | None) -> Chain | None:
    exchange = None if found is None else find_exchange(ask, found["exchange_id"])
    if found is None or exchange is None:
        return None
    chain = exchange_chain(ask, exchange)
    return replace(chain, verdict=f"{chain.verdict}; {command_words(found)}", remarks=(*chain.remarks, others(found)))


def exchange_chain(ask: Asking, found: Mapping[str, Any]) -> Chain:
    """The chain of a row of exchanges, as `find_exchange` gives it."""
    link, remark = exchange_link(ask, found)
    told, like = usual(ask, found)
    verdict = f"{link.what}; {told}" if told else link.what
    if like:
        verdict = f"no slower than others of its kind: {verdict}"
    remarks = (remark,) if remark else ()
    return Chain(f"exchange {found['exchange_id']}", verdict, (walk(ask, link),), like, remarks=remarks)


def _partitions(ask: Asking, words: Sequence[str], said: Sequence[str]) -> tuple[list[dict[str, Any]], str]:
    """Rows of `standing` that the words name, the worst first; how they were read, where that is not as typed."""
    for group, topic, partition, as_typed in _spots(words, said):
        rows = standing(ask, (group,) if group is not None else ())
        found = [row for row in rows if row["topic"] == topic and row["partition"] == partition]
        if found:
            of = "" if group is None else f"group {name(group)}, "
            read_as = "" if as_typed else f"read as {of}topic {name(topic)}, partition {partition}"
            return sorted(found, key=lambda row: -(row["lag"] or 0)), read_as
    return [], ""


def _spots(words: Sequence[str], said: Sequence[str]) -> Iterator[tuple[str | None, str, int, bool]]:
    """Group (or None), topic, partition, and whether in this order: `payments 4`, `payments-4`, `GROUP payments 4`,
    `GROUP payments-4`, as typed first, then in every other order."""
    # A group's name may have spaces: what is one word of the command line is tried as one name first.
    for parts in dict.fromkeys((tuple(words), tuple(said))):
        if not 1 <= len(parts) <= 3:
            continue
        for place in range(len(parts) - 1, -1, -1):
            rest = (*parts[:place], *parts[place + 1 :])
            last = place == len(parts) - 1
            if rest and _is_partition(parts[place]):
                yield (rest[0] if len(rest) == 2 else None), rest[-1], int(parts[place]), last
                if len(rest) == 2:
                    yield rest[1], rest[0], int(parts[place]), False
            topic, _, number = parts[place].rpartition("-")
            if topic and _is_partition(number) and len(rest) < 2:
                yield (rest[0] if rest else None), topic, int(number), last


def _is_partition(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) < 10


def _told(ask: Asking, stands: Sequence[Mapping[str, Any]], read_as: str) -> list[Chain]:
    every = ask.findings()
    chains = [_partition(ask, stand, every) for stand in stands[:MOST_CHAINS]]
    if read_as:
        chains[0] = replace(chains[0], remarks=(*chains[0].remarks, read_as))
    if len(stands) > MOST_CHAINS:
        left = f"and {count(len(stands) - MOST_CHAINS, 'more group')} of it: name one, as in GROUP TOPIC PARTITION"
        chains[-1] = replace(chains[-1], remarks=(*chains[-1].remarks, left))
    return sorted(chains, key=lambda chain: chain.healthy)


def _partition(ask: Asking, stand: Mapping[str, Any], every: Sequence[Finding]) -> Chain:
    last = last_commit(ask, stand)
    clients = clients_of(ask, stand, last)
    about = [f for f in every if is_about(f, stand, clients)]
    accused = any(severity_rank(f.severity) > severity_rank("info") for f in about)
    covered = coverage(ask, flows_of(stand))
    healthy = "" if accused else is_healthy(ask, stand)
    step = walk(ask, partition_link(stand))
    subject = f"{name(stand['topic'])} {stand['partition']} of group {name(stand['group_id'])}"
    verdict = _nothing_wrong(healthy, covered) or step.link.what
    beside = tuple((f.code, f.finding_id) for f in about[:_NEAR])
    remarks = (f"tested: {TESTED}; captured: {covered.text}" if healthy else f"captured: {covered.text}",)
    return Chain(subject, verdict, (step,), bool(healthy) and covered.whole, beside, remarks)


def _nothing_wrong(healthy: str, covered: Coverage) -> str:
    """The verdict of what passed every test; of a capture that has not all of it, no more than was seen."""
    if not healthy or covered.whole:
        return f"nothing is wrong: {healthy}" if healthy else ""
    return f"no fault was seen, but the capture is not complete: {healthy}"


def _nothing(ask: Asking, text: str) -> str:
    """What was asked is not there, and what is near."""
    known = {f"{row['topic']}-{row['partition']}": row["group_id"] for row in standing(ask)[:_COMPARED]}
    names = NearNames()
    near = names.near(text.replace(" ", "-"), known, _NEAR, 0.6)
    shown = printable(text, _LONGEST_SUBJECT)
    if not near:
        pairs = names.near(text, mqtt.names_near(ask), _NEAR, 0.6)
        if pairs:
            return f"nothing here is called '{shown}'; near it: {', '.join(map(name, pairs))}"
    else:
        listed = ", ".join(f"{name(one)} (group {name(known[one])})" for one in near)
        return f"nothing here is called '{shown}'; near it: {listed}"
    some = list(known)[:_NEAR]
    hint = f"; partitions are such as {', '.join(map(name, some))}" if some else ""
    return (
        f"nothing here is called '{shown}'{hint}. A subject is TOPIC PARTITION, GROUP TOPIC PARTITION, CLIENT TOPIC of "
        "MQTT, mongo CLIENT COMMAND, or the id of a finding, an exchange or a message"
    )
