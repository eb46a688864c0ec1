"""Which number of a logged request rises by one from line to line, so that one left out is a line that is missing.

Most clients number the requests of each connection one by one, and name themselves (KIP-511). Java's share one counter
among all connections of a client, to other brokers, too (NetworkClient): of them the requests of a fetch session are
numbered (KIP-227). A client without a name may be either; what it leaves out is a doubt. Logins are not in the log:
SaslServerAuthenticator answers them, when a client logs in again in the midst of a connection, too (KIP-368).
"""

from __future__ import annotations

from typing import Any

from wirewitness.dissectors.core.log_reader import Numbered

_FETCH = 1
_ONE_COUNTER_FOR_ALL = frozenset({"apache-kafka-java"})
_NONE = range(0)
# SaslHandshake, and one to four SaslAuthenticate.
_LOGIN = range(2, 6)


def numbered(
    api_key: int,
    correlation_id: int,
    connection: str,
    software: str | None,
    security: str | None,
    bodies: tuple[Any, Any],
) -> Numbered | None:
    """The number of a request; None where nothing numbers it. bodies: the JSON of request and answer."""
    if software in _ONE_COUNTER_FOR_ALL:
        return _of_session(*bodies, connection) if api_key == _FETCH else None
    unlogged = _LOGIN if (security or "").startswith("SASL_") else _NONE
    return Numbered(connection, correlation_id, unlogged, sure=software is not None, all_of_it=True)


def _of_session(request: Any, response: Any, connection: str) -> Numbered | None:
    """The epoch of a fetch session: the answer to 0 begins one, each further request has the next one."""
    asked = request if type(request) is dict else {}
    told = response if type(response) is dict else {}
    epoch = asked.get("sessionEpoch")
    session = asked.get("sessionId") if epoch else told.get("sessionId")
    if type(epoch) is not int or type(session) is not int or epoch < 0 or session <= 0:
        return None
    broker = connection.partition("-")[0]
    return Numbered(f"{broker} {session}", epoch, _NONE, sure=True, all_of_it=False)
