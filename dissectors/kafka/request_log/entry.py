"""One line of the broker's request log: JSON in, `Entry` out.

What a line holds is written by RequestConvertToJson.requestDescMetrics (KIP-673): the header, both bodies, the
connection as `LOCAL:PORT-REMOTE:PORT-INDEX` (since KIP-1017 with the processor before the index), times in ms, who
asked. A request that is not answered has an empty text, or null, for a response.
"""

from __future__ import annotations

import ipaddress
import json
import re
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.log_reader import LogError, Numbered
from wirewitness.dissectors.kafka.request_log.values import text_of

# Which number of a logged request rises by one from line to line, so that one left out is a line that is missing.
#
# Most clients number the requests of each connection one by one, and name themselves (KIP-511). Java's share one
# counter among all connections of a client, to other brokers, too (NetworkClient): of them the requests of a fetch
# session are numbered (KIP-227). A client without a name may be either; what it leaves out is a doubt. Logins are not
# in the log: SaslServerAuthenticator answers them, when a client logs in again in the midst of a connection, too
# (KIP-368).

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


_CONNECTION = re.compile(r"(\S{2,64}):(\d{1,5})-(\S{2,64}):(\d{1,5})((?:-\d{1,19}){1,2})", re.ASCII)
_NS_PER_MS = 1_000_000
# No broker holds a request for longer; what claims to is damage, and would put it before the year 1970.
_MOST_MS = 366 * 86_400_000

MEANINGS = {
    "log_json": "that are no JSON, as where a line is cut, and are left out",
    "log_depth": "with JSON that is nested too deeply, and are left out",
    "log_header": "whose header or connection cannot be read, and are left out",
    "log_number": "with NaN or Infinity, which JSON does not have, and are left out",
    "log_twice": "with a name that stands twice in one object; the last one counts",
}

Address = tuple[str, int]


class Times(NamedTuple):
    """Milliseconds that a request spent: in all, and waiting to be looked at, being worked on, waiting for others, held
    back by a quota, waiting to be sent, being sent. None where the line does not say."""

    total: float | None
    request_queue: float | None
    local: float | None
    remote: float | None
    throttle: float | None
    response_queue: float | None
    send: float | None


class Entry(NamedTuple):
    """What a line says; a `LoggedExchange`. request, response: the bodies in JSON. forwarded: another broker passed the
    request on, so that connection, client and server are those of the brokers."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    request: Any
    response: Any
    connection: str
    client: Address
    server: Address
    times: Times
    forwarded: bool
    principal: str | None
    listener: str | None
    security_protocol: str | None
    software_name: str | None
    software_version: str | None
    odd: tuple[str, ...]

    @property
    def asked(self) -> str:
        """API and correlation id."""
        return f"{self.api_key} {self.correlation_id}"

    @property
    def duration_ns(self) -> int:
        """All of its time in the broker; 0 where the line does not say."""
        return round((self.times.total or 0) * _NS_PER_MS)

    @property
    def numbered(self) -> Numbered | None:
        """What tells that lines before it are missing. A request that was passed on has the number of its client."""
        if self.forwarded:
            return None
        bodies = self.request, self.response
        who = self.connection, self.software_name, self.security_protocol
        return numbered(self.api_key, self.correlation_id, *who, bodies)


class _Nan(ValueError):
    """A constant that JSON does not have."""


def entry(text: bytes) -> Entry:
    """Read the JSON of a line. Raises LogError and nothing else; what stands behind the object is passed over."""
    twice = [False]

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(found)
        if len(made) < len(found):
            twice[0] = True
        return made

    try:
        line, _ = json.JSONDecoder(object_pairs_hook=pairs, parse_constant=_no_number).raw_decode(
            text.decode("utf-8", "backslashreplace")
        )
    except _Nan:
        raise LogError("log_number", "NaN or Infinity") from None
    except RecursionError:
        raise LogError("log_depth", "nested too deeply") from None
    except ValueError:
        raise LogError("log_json", "no JSON") from None
    try:
        return _entry(line, ("log_twice",) if twice[0] else ())
    except (KeyError, TypeError, DecodeError):
        raise LogError("log_header", "no header") from None


def _no_number(_: str) -> NoReturn:
    raise _Nan


def _entry(line: dict[str, Any], odd: tuple[str, ...]) -> Entry:
    header = line["requestHeader"]
    connection = text_of("connection", line["connection"])
    client, server = ends(connection)
    information = line.get("clientInformation")
    software = information if type(information) is dict else {}
    response = line.get("response")
    return Entry(
        _number(header["requestApiKey"], 15),
        _number(header["requestApiVersion"], 15),
        _number(header["correlationId"], 31),
        _text(header.get("clientId")),
        line["request"],
        None if response == "" else response,
        connection,
        client,
        server,
        Times(*(_ms(line.get(name)) for name in _TIME_NAMES)),
        line.get("isForwarded") is True,
        _text(line.get("principal")),
        _text(line.get("listener")),
        _text(line.get("securityProtocol")),
        _software(software.get("softwareName")),
        _software(software.get("softwareVersion")),
        odd,
    )


_TIME_NAMES = (
    "totalTimeMs", "requestQueueTimeMs", "localTimeMs", "remoteTimeMs", "throttleTimeMs", "responseQueueTimeMs",
    "sendTimeMs",
)  # fmt: skip


def _number(value: Any, bits: int) -> int:
    if type(value) is not int or not -(1 << bits) <= value < 1 << bits:
        raise DecodeError("no number of a header")
    return value


def _text(value: Any) -> str | None:
    return text_of("text", value) if type(value) is str else None


def _software(value: Any) -> str | None:
    """ClientInformation has a word for what the client did not say (UNKNOWN_NAME_OR_VERSION)."""
    return None if value == "unknown" else _text(value)


def _ms(value: Any) -> float | None:
    # The range alone tells infinity, too, and whole numbers that no float can hold.
    return float(value) if type(value) in (int, float) and 0 <= value <= _MOST_MS else None


@lru_cache(maxsize=4096)
def ends(connection: str) -> tuple[Address, Address]:
    """Client and server of a connection as the broker names it. Raises DecodeError."""
    found = _CONNECTION.fullmatch(connection)
    if found is None:
        raise DecodeError("no connection")
    local, local_port, remote, remote_port, _ = found.groups()
    return _end(remote, remote_port), _end(local, local_port)


def _end(address: str, port: str) -> Address:
    """An address as captures have it: IPv6 in short, without the interface."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        raise DecodeError("no address") from None
    if int(port) > 65535:
        raise DecodeError("no port")
    return str(known), int(port)
