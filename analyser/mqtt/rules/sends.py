"""A message with all its sends, and whether it arrived.

In: rows of mqtt_publishes, rows of mqtt_connections by flow. Out: chains: the first and the last send of a message
whose handshake stopped, how often it was sent, and what TCP confirmed of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from wirewitness.analyser.engine.rules.delivery import delivered
from wirewitness.analyser.engine.rules.frame_rows import Row

# Columns of mqtt_connections and of mqtt_publishes that tell whether a PUBLISH arrived.
CONFIRMED_COLUMNS = ("transport", "acked_by_client", "acked_by_server", "retransmitted_segments", "gap_bytes")
SENT_COLUMNS = ("message_id", "direction", "length_bytes")


class Chain(NamedTuple):
    """A message's first and last send, how often it was sent, and whether its receiver's TCP confirmed one of them."""

    first: Row
    last: Row
    sends: int
    arrived: bool | None


def chains(rows: Sequence[Row], stopped: Collection[str], connections: Mapping[str, Row]) -> list[Chain]:
    """Messages whose handshake stopped, each with its first send: on this flow or, with DUP, on the one before.

    rows: of one client id, in the order of time. stopped: values of `handshake` that say so.
    """
    found: dict[int, Chain] = {}
    open_ones: dict[tuple[object, ...], Chain] = {}
    for row in rows:
        key = (row["direction"], row["packet_identifier"], row["topic"], row["payload_crc32"])
        known = bool(row["client_id"])
        before = open_ones.get(key) if row["dup"] and (known or row["first_message_id"] is not None) else None
        if before is not None:
            found.pop(id(before), None)
        state = arrived(row, connections.get(row["flow_id"]))
        if before is None:
            chain = Chain(row, row, 1, state)
        else:
            chain = Chain(before.first, row, before.sends + 1, _either(before.arrived, state))
        open_ones[key] = chain
        if row["handshake"] in stopped:
            found[id(chain)] = chain
    return list(found.values())


def arrived(publish: Row, connection: Row | None) -> bool | None:
    """Whether its receiver's TCP confirmed a PUBLISH; None where that is not known.

    Not confirmed is only believed where bytes of the flow were sent again, as a sender does that hears nothing (RFC
    6298), and none are missing: else the packet that confirms may be missing from the capture. Inside WebSocket a
    packet has another length than its bytes on the wire.
    """
    if connection is None or connection["transport"] != "tcp":
        return None
    side = "server" if publish["direction"] == "client_to_server" else "client"
    state = delivered(publish["message_id"], publish["length_bytes"], connection[f"acked_by_{side}"])
    if state is False and (connection["gap_bytes"] or not connection["retransmitted_segments"]):
        return None
    return state


def _either(one: bool | None, other: bool | None) -> bool | None:
    if one or other:
        return True
    return None if one is None or other is None else False
