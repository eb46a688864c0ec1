"""Replies of the MongoDB samples beside tshark's: which request each of them names, in exhaust streams too."""

from __future__ import annotations

import pytest

import wirewitness
from tests.conftest import SAMPLES
from wirewitness.reports.report.tshark import find_tshark
from wirewitness.reports.report.tshark.check import messages
from wirewitness.reports.report.tshark.trees import Packet

NAMES = sorted(path.name for path in SAMPLES.glob("mongo_*.pcapng"))
PORTS = {27017: "mongo", 27018: "mongo"}


@pytest.mark.parametrize("name", NAMES)
def test_replies_answer_the_request_that_they_name(name: str, tshark: str) -> None:
    packets = [one for one in find_tshark().packets(str(SAMPLES / name), PORTS) if isinstance(one, Packet)]
    shown = [message for packet in packets for message in messages(packet) if "request" in message.values]
    theirs = {(one.packet, one.values["request"]): one for one in shown}
    with wirewitness.read(SAMPLES / name, tables=["mongo_commands"]) as analysis:
        commands = analysis.arrow("mongo_commands").to_pylist()
    rows = [row for row in commands if row["response_packet"] is not None]
    assert rows
    for row in rows:
        theirs.pop((row["response_packet"], row["request_id"]))
    # FerretDB answers what wants no answer. The others go on by themselves: each answers the reply before it.
    unwanted = {(row["client_port"], row["request_id"]) for row in commands if row["unacknowledged"]}
    unasked = [one for one in theirs.values() if (one.key.receiver[1], one.values["request"]) not in unwanted]
    assert len(unasked) == sum(row["replies"] - 1 for row in rows)
