"""Which side: did TCP deliver a message, so that its receiver is to blame, or did it get lost on the way?

In: exchanges and how much of a stream its receiver's TCP confirmed. Out: true, false or not known, and words for it.
Acknowledged bytes are in the receiver's kernel (RFC 9293, 3.8); whether the process read them is another matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# Columns of exchanges that `delivered` wants for requests, and those of flows that `sent_and_acked` does.
REQUEST_COLUMNS = ("request_message_id", "request_bytes", "direction")
STREAM_COLUMNS = ("acked_by_server", "acked_by_client", "bytes_to_server", "bytes_to_client")
OTHER = {"client": "server", "server": "client"}


def delivered(message_id: str | None, size: int | None, confirmed: int | None) -> bool | None:
    """Whether a message's last byte lies before what was confirmed of its stream; None where that is not known.

    message_id: ends with the message's stream offset. confirmed: stream bytes, as `flows.acked_by_server` counts them.
    """
    if not message_id or size is None or confirmed is None:
        return None
    place = message_id.rpartition("-")[2]
    return int(place) + size <= confirmed if place.isdigit() else None


def request_delivered(exchange: Mapping[str, Any], acked_by_server: int | None) -> bool | None:
    """The same of a request of the client."""
    return delivered(exchange["request_message_id"], exchange["request_bytes"], acked_by_server)


def asker(exchange: Mapping[str, Any]) -> str:
    """Whose request it is: client, or server (a broker's PUBLISH waits for the client's answer)."""
    return "server" if exchange.get("direction") == "server_to_client" else "client"


def sent_and_acked(exchange: Mapping[str, Any], flow: Mapping[str, Any]) -> tuple[bool, bool | None]:
    """Was a request sent whole, as far as the capture goes, and did the TCP of the side that it went to ACK all of it?

    Null where that side's ACKs are not in the capture. What was not sent whole never arrived.
    """
    to = OTHER[asker(exchange)]
    name, size = exchange["request_message_id"], exchange["request_bytes"]
    if delivered(name, size, flow[f"bytes_to_{to}"]) is False:
        return False, False
    return True, delivered(name, size, flow[f"acked_by_{to}"])


def at_the_first_try(exchange: Mapping[str, Any], connection: Mapping[str, Any] | None) -> bool | None:
    """Whether the request arrived without a byte of its connection being sent again.

    A sender whose bytes are not confirmed sends them again after about a second (RFC 6298; Linux: 0.2 s), so where none
    were, the receiver's TCP had all of them by then. False: some were sent again, maybe not these. None: TCP of one
    side is missing from the capture, or bytes are.
    connection: gap_bytes, acked_by_server, ts_last_from_server and retransmitted_segments of its flow.
    """
    if connection is None or connection["gap_bytes"] or connection["retransmitted_segments"] is None:
        return None
    if connection["acked_by_server"] is None or connection["ts_last_from_server"] is None:
        return None
    arrived = exchange["status"] not in ("unanswered", None) or request_delivered(
        exchange, connection["acked_by_server"]
    )
    return bool(arrived) and not connection["retransmitted_segments"]


def counted_at_once(states: Iterable[bool | None]) -> dict[str, int]:
    """The same for a finding's numbers."""
    known = [*states]
    return {
        "delivered_at_first_try": known.count(True),
        "connections_sent_again": known.count(False),
        "delivery_unknown": known.count(None),
    }


def which_side(
    states: Iterable[bool | None], receiver: str = "server", *, closed: bool = False, cut_short: bool = False
) -> str:
    """Of requests without a response: a sentence on where they are; empty where nothing is known. receiver: the side
    that they went to. closed: it reset the connection itself, so what it did not ACK may have come after that.
    cut_short: the connection was reset, by whichever side, so nobody knows what it would have done."""
    known = [*states]
    if None in known or not known:
        return ""
    one, process = len(known) == 1, "had not responded by then" if cut_short else "did not respond"
    if all(known):
        return f" The {receiver}'s TCP ACKed {'it' if one else 'them'}, so the process {process}."
    if closed:
        which = "not ACKed it" if one else f"ACKed {sum(map(bool, known)) or 'none'} of them"
        return f" The {receiver}'s TCP had {which} before."
    if not any(known):
        where = "it: it was lost on the way, or the host was gone"
        if not one:
            where = "them: they were lost on the way, or the host was gone"
        return f" The {receiver}'s TCP never ACKed {where}."
    return f" The {receiver}'s TCP ACKed {sum(map(bool, known))} of them; the others were lost on the way."


def counted(states: Iterable[bool | None]) -> dict[str, int]:
    """The same for a finding's numbers."""
    known = [*states]
    return {
        "requests_delivered": known.count(True),
        "requests_not_delivered": known.count(False),
        "requests_delivery_unknown": known.count(None),
    }
