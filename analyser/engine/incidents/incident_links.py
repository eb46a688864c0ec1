"""Which findings follow from which: the table of causes and consequences, by code.

In: nothing. Out: `LINKS`, read from top to bottom: a finding belongs to the first link in which a cause of it is there.
Causes stand above what may follow from them, so that no finding follows from itself; a test holds the table to that.
"""

from __future__ import annotations

from typing import NamedTuple


class Link(NamedTuple):
    """cause: its code. follows: codes of what may follow from it. agree: what both must have in common, one of these
    (`incident_facts.py`); addresses only where a client id is not known. lasts: it may follow at any time later, not
    only while the cause goes on or soon after. of: only causes whose numbers have one of these as `operation` or
    `kind`."""

    cause: str
    follows: tuple[str, ...]
    agree: tuple[str, ...]
    lasts: bool = False
    of: tuple[str, ...] = ()

    @property
    def seen_late_s(self) -> float:
        """So much later than the first that followed from it evidence of the cause may come."""
        return 0.0 if self.cause in _REQUESTS else 15.0


# Rules see a state (a silence, a wait) at their own pace, and so some time after it began. What a request did, or what
# its answer told, has the time at which it stood on the wire: nothing before it follows from it.
_REQUESTS = frozenset({"KAF309", "KAF310", "KAF316"})

# What any trouble of a member does to its group.
_GROUP_SUFFERS = (
    "KAF105", "KAF107", "KAF108", "KAF109", "KAF110", "KAF111", "KAF114", "KAF115", "KAF116", "KAF117", "KAF118",
    "KAF121", "KAF125", "KAF126", "KAF127", "KAF303",
)  # fmt: skip
# Commits that go wrong, where the same client or partition is concerned.
_COMMITS_SUFFER = ("KAF101", "KAF102", "KAF103", "KAF104", "KAF113", "KAF120", "KAF129")
# What a client does that cannot get in or on.
_CLIENT_RETRIES = (
    "KAF117", "KAF303", "KAF306", "KAF314", "KAF315", "NET103", "TCP103", "TCP104",
)  # fmt: skip
# What any trouble of TLS does to the clients of a server, whatever they speak.
_TLS_SUFFERS = (*_CLIENT_RETRIES, "KAF301", "MON103", "MON107", "MON112", "MQT101", "TLS105")
# What a way or a server that stands still does to the clients on it.
_TRAFFIC_SUFFERS = (
    "KAF303", "TCP101", "TCP102", "TCP103", "TCP105", "TCP106", "KAF105", "KAF107", "KAF108", "KAF110", "KAF111",
    "KAF114", "KAF117", "KAF118", "KAF126", "KAF127", "KAF201", "KAF205", "KAF208", "KAF301", "KAF308", "KAF315",
)  # fmt: skip
_OFFSETS_SUFFER = (
    "KAF101", "KAF102", "KAF103", "KAF105", "KAF106", "KAF107", "KAF108", "KAF113", "KAF114", "KAF118", "KAF120",
    "KAF121",
)  # fmt: skip
_BEHIND = ("KAF107", "KAF108")
# A consumer whose connection stands.
_STANDS = ("KAF109", "KAF125", *_BEHIND)
# Operations of KAF309.
_CUTS_LOGS = ("DeleteTopics", "DeleteRecords")
_MOVES_OFFSETS = ("OffsetReset", "OffsetDelete", "DeleteGroups", *_CUTS_LOGS)
_SETTINGS = ("AlterConfigs", "IncrementalAlterConfigs", "CreateAcls", "DeleteAcls")

# What a client that reads or answers no more does to its handshakes and to what is on its way to it.
_MQTT_SUFFERS = ("MQT105", "MQT107", "MQT114", "MQT115", "MQT119")

_CLIENT = ("client",)
_WAY = ("flow", "client", "address")
_PLACE = ("partition", "client")

# What any trouble of a server of MongoDB or of the way to it does to an application.
_MONGO_SUFFERS = ("MON101", "MON103", "MON107", "MON112", "MON114")

# Errors of MON102 for which connections are closed, or opened again and again; a conflict, a duplicate key or a time
# limit leaves them as they are.
_MONGO_LOSES_CONNECTIONS = (
    "not primary", "node is recovering", "network between servers", "interrupted", "authentication", "not authorised",
    "overload", "old driver",
)  # fmt: skip

LINKS: tuple[Link, ...] = (
    # Never got in.
    Link("KAF310", (*_CLIENT_RETRIES, "KAF301"), ("client", "target", "address")),
    Link("KAF311", (*_CLIENT_RETRIES, "KAF301", "KAF312"), ("client", "address")),
    Link("KAF136", ("KAF117", "KAF122", "KAF125", "KAF303", "KAF315", "KAF323"), ("server", "client")),
    Link("KAF327", (*_CLIENT_RETRIES, "KAF301", "KAF305"), _CLIENT),
    # It says of the port what KAF311 says of each client.
    Link("KAF311", ("TLS106",), ("server", "client")),
    Link("KAF311", ("CAP106",), ("capture",)),
    Link("TLS102", ("TLS107",), ("server",), of=("expired",)),
    Link("TLS102", ("TLS101",), ("server",)),
    Link("TLS107", ("TLS101", *_TLS_SUFFERS), ("server",)),
    Link("TLS101", _TLS_SUFFERS, ("server",)),
    Link("TLS102", _TLS_SUFFERS, ("server",), of=("expired", "not valid yet")),
    Link("TLS106", (*_TLS_SUFFERS, "CAP106"), ("server",)),
    Link("TLS101", ("CAP106",), ("capture",)),
    Link("TLS104", ("TLS101", "NET103"), ("server",)),
    Link("KAF312", (*_CLIENT_RETRIES, "KAF301"), ("client", "address")),
    Link("KAF305", _CLIENT_RETRIES, _CLIENT),
    Link("KAF313", (*_CLIENT_RETRIES, "KAF301"), ("client", "topic")),
    # Requests that reach the wrong broker, wherever a client sends them.
    Link("KAF325", ("KAF117", "KAF125", "KAF205", "KAF301", "KAF315", "KAF323"), _CLIENT),
    Link("KAF341", ("KAF117", "KAF301", "KAF313", "KAF315"), _CLIENT),
    # An operator did it.
    Link("KAF316", ("KAF309",), ("topic",)),
    Link("KAF316", (*_OFFSETS_SUFFER, "KAF110"), ("topic",), lasts=True),
    Link("KAF316", ("KAF201", "KAF205", "KAF301", "KAF313", "KAF315"), ("topic", "client", "error")),
    Link("KAF309", _OFFSETS_SUFFER, ("group",), lasts=True, of=_MOVES_OFFSETS),
    Link("KAF309", ("KAF103", "KAF113", "KAF114", "KAF118", "KAF120", "KAF121"), ("topic",), lasts=True, of=_CUTS_LOGS),
    # What all groups had stored is gone.
    Link("KAF309", ("KAF103", "KAF113", "KAF114", "KAF118", "KAF120", "KAF121", "KAF131", "KAF139"), ("kept_in",),
         lasts=True, of=_CUTS_LOGS),
    Link("KAF309", ("KAF201", "KAF205", "KAF301", "KAF313", "KAF315"), ("topic",), of=("DeleteTopics", *_SETTINGS)),
    Link("KAF309", ("KAF222", "KAF343"), ("topic",), lasts=True, of=("CreatePartitions",)),
    Link("KAF309", ("KAF304",), ("capture",), of=("AlterClientQuotas",)),
    # The way and the servers.
    Link("NET101", _TRAFFIC_SUFFERS, _WAY),
    Link("NET104", ("KAF301", "KAF303", "KAF306", "KAF314", "MON103", "MON107", "MON112", "NET103", "TCP103", "TCP104"),
         ("server",)),
    Link("KAF302", _TRAFFIC_SUFFERS, ("client", "server", "address"), of=("froze", "slow")),
    # What a cut log does to who reads and writes it.
    Link("KAF320", ("KAF103", "KAF108", "KAF113", "KAF114", "KAF120", "KAF121", "KAF201", "KAF301"), ("partition",),
         lasts=True),
    Link("KAF344", ("KAF108", "KAF109"), ("topic", "client")),
    # Its records wait where its group was.
    Link("KAF347", ("KAF134",), ("group", "topic"), lasts=True),
    # Where nobody leads, nobody reads or writes.
    Link("KAF342", ("KAF107", "KAF108", "KAF117", "KAF125", "KAF205", "KAF301", "KAF303", "KAF315"),
         ("partition", "topic")),
    # Whoever waits for a replica gives up in the end.
    Link("KAF319", ("KAF302", "KAF303", "KAF205", "TCP103"), ("client", "partition")),
    # Commits wait for replicas as well.
    Link("KAF319", ("KAF303",), ("replicas",)),
    # Who is in the group, and as whom.
    Link("KAF128", (*_GROUP_SUFFERS, *_CLIENT_RETRIES), ("client", "group")),
    Link("KAF128", _COMMITS_SUFFER, _PLACE),
    Link("KAF138", _GROUP_SUFFERS, ("client", "group")),
    Link("KAF112", (*_GROUP_SUFFERS, *_CLIENT_RETRIES, "KAF119"), ("client", "group")),
    Link("KAF112", _COMMITS_SUFFER, ("group",)),
    Link("KAF119", (*_GROUP_SUFFERS, "KAF122"), ("client", "group")),
    Link("KAF119", _COMMITS_SUFFER, _PLACE),
    Link("KAF127", tuple(code for code in _GROUP_SUFFERS if code != "KAF127"), ("client", "group")),
    Link("KAF127", _COMMITS_SUFFER, _PLACE),
    # Metadata that is asked for all the time is one of both.
    Link("KAF301", ("KAF323",), _CLIENT),
    # Who is refused for good tries again, or waits for ever.
    Link("KAF322", ("KAF117", "KAF125", "KAF313", "KAF315", *_CLIENT_RETRIES), ("client",), lasts=True),
    # A request that is too large for the server goes out again and again.
    Link("KAF321", (*_CLIENT_RETRIES, "KAF208", "KAF301", "NET104"), ("client", "address")),
    # Who waits too long to be let in gives up and comes again.
    Link("KAF329", (*_CLIENT_RETRIES, "KAF301", "KAF332", "NET104"), ("client", "server")),
    # Who is refused for its address's number of connections tries again.
    Link("KAF330", (*_CLIENT_RETRIES, "KAF301", "NET104"), ("client", "address")),
    # Clients of one thread send no heartbeat while they wait for their Fetch.
    Link("KAF333", ("KAF111", *_BEHIND), _CLIENT),
    # What was on its way when a connection ended by its age is sent again.
    Link("KAF331", ("TCP103", "NET103", "KAF314", "KAF208"), _CLIENT),
    # A quota makes a client wait: the broker holds its response back and reads nothing from its connection (KIP-219).
    Link("KAF304", ("KAF303", "KAF205", "KAF208", "TCP102", *_STANDS), ("flow", "client")),
    # Who gives up before the response comes closes, connects and sends again.
    Link("KAF332", ("KAF303", "KAF205", "KAF208", "KAF301", "KAF306", "KAF314", "NET103", "TCP103"),
         ("client", "address")),
    Link("KAF303", ("KAF105", "KAF107", "KAF108", "KAF118", "KAF201", "KAF205", "KAF208", "KAF301", "TCP101", "TCP103"),
         ("client", "address")),
    # Who gives up on a request connects again.
    Link("KAF303", ("TCP102", "KAF306", "KAF314", "NET103"), _CLIENT),
    # Whoever is refused for want of a replica says which broker is gone, and what that costs.
    Link("KAF308", ("KAF205", "KAF201", "KAF118", "KAF301"), ("partition", "topic")),
    Link("KAF308", ("TCP103", "TCP104"), ("host",)),
    Link("KAF205", ("TCP103", "TCP104"), ("host",)),
    Link("KAF205", ("KAF301",), ("client", "partition")),
    Link("TCP104", ("KAF301", "KAF306", "KAF117", "NET103", "KAF314"), ("server", "client")),
    Link("KAF301", ("KAF118", "KAF201", "TCP103"), ("server", "client", "topic")),
    Link("KAF126", tuple(code for code in _GROUP_SUFFERS if code not in ("KAF126", "KAF127")),
         ("client", "group")),
    Link("KAF126", ("TCP101", "TCP103"), ("client", "address")),
    Link("KAF126", ("TCP102",), ("flow", "client")),
    Link("KAF126", ("KAF101", "KAF104"), _CLIENT),
    Link("KAF111", ("KAF105", "KAF110", "KAF303", "KAF107", "KAF108", "KAF114", "KAF115", "KAF116", "KAF121"),
         ("client", "group")),
    Link("TCP101", ("KAF135",), ("flow", "client")),
    Link("KAF135", ("KAF108", "KAF114", "KAF116", "KAF110"), _CLIENT),
    # A member that falls silent, and what its connection shows of it.
    Link("KAF111", ("TCP101", "TCP102", "TCP103"), ("flow", "client")),
    Link("TCP101", ("TCP102", "TCP103", "TCP105", *_STANDS), ("flow", "client")),
    Link("TCP102", ("TCP103", "TCP106", *_STANDS), ("flow", "client")),
    Link("TCP106", _BEHIND, ("flow", "client")),
    # Producers.
    Link("KAF206", ("KAF211", "KAF201", "KAF203", "KAF205", "KAF207", "KAF208", "KAF105", "KAF118", "KAF315"),
         ("transactional_id", "producer_id", "client")),
    Link("KAF207", ("KAF201", "KAF203"), ("transactional_id", "producer_id", "client")),
    Link("KAF203", ("KAF107", "KAF108", "KAF109", "KAF125", "KAF205"), ("partition", "topic", "transactional_id")),
    Link("KAF205", ("KAF201", "KAF208", "KAF315"), ("client", "partition")),
    Link("KAF307", ("KAF205", "KAF201", "KAF109"), ("client", "partition")),
    Link("KAF201", ("KAF208", "KAF211"), ("producer_id", "client", "partition")),
    # Stored offsets.
    Link("KAF129", ("KAF101", "KAF102", "KAF103", "KAF104", "KAF105", "KAF113", "KAF114", "KAF118", "KAF121"),
         ("partition",), lasts=True),
    Link("KAF106", ("KAF103", "KAF101", "KAF102", "KAF105", "KAF114", "KAF121"), ("partition",), lasts=True),
    Link("KAF103", ("KAF101", "KAF102", "KAF104"), ("partition",)),
    Link("KAF103", ("KAF114", "KAF107", "KAF108", "KAF121"), ("partition",), lasts=True),
    Link("KAF101", ("KAF102", "KAF104"), ("partition",)),
    Link("KAF104", ("KAF102",), ("partition",)),
    Link("KAF105", ("KAF107", "KAF108", "KAF109", "KAF114", "KAF121"), _PLACE, lasts=True),
    Link("KAF118", ("KAF107", "KAF108", "KAF109", "KAF114", "KAF121", "KAF122", "KAF315"), _PLACE, lasts=True),
    Link("KAF113", ("KAF103", "KAF114", "KAF120", "KAF121"), ("partition",), lasts=True),
    Link("KAF122", ("KAF107", "KAF108", "KAF109", "KAF114", "KAF121"), ("client", "group"), lasts=True),
    Link("KAF124", ("KAF102", "KAF108", "KAF114", "KAF121"), _PLACE, lasts=True),
    Link("KAF120", ("KAF107", "KAF108", "KAF109", "KAF114", "KAF121"), ("partition",), lasts=True),
    Link("KAF121", ("KAF114", "KAF107", "KAF108"), ("group",)),
    Link("KAF114", ("KAF108",), ("partition",)),
    # Behind.
    Link("KAF131", ("KAF103", "KAF107", "KAF108", "KAF114", "KAF120", "KAF121"), ("group",)),
    Link("KAF139", ("KAF114", "KAF120", "KAF121"), ("group",)),
    Link("KAF133", ("KAF107", "KAF108", "KAF109", "KAF120"), ("client", "group")),
    Link("KAF130", ("KAF108", "KAF110"), ("client", "group")),
    Link("KAF132", ("KAF314", "KAF122"), ("client",)),
    Link("KAF134", ("KAF121", "KAF107", "KAF108"), ("group",)),
    Link("KAF116", ("KAF110", "KAF107", "KAF108", "KAF114"), ("client", "group")),
    Link("KAF110", ("KAF105", "KAF107", "KAF108", "KAF114", "KAF121"), ("group",)),
    Link("KAF117", ("KAF107", "KAF108", "KAF125", "KAF306", "KAF314", "KAF315", "NET103"), _CLIENT),
    Link("KAF304", ("KAF202", *_BEHIND), _CLIENT),
    Link("KAF125", ("KAF115", *_BEHIND), _PLACE),
    Link("KAF317", _BEHIND, ("client", "group")),
    Link("KAF209", ("KAF115", *_BEHIND), ("partition",)),
    Link("KAF115", _BEHIND, ("group",)),
    Link("KAF109", _BEHIND, _PLACE),
    Link("KAF107", ("KAF108",), _PLACE),
    Link("KAF314", ("KAF301", "KAF306", "NET103"), _CLIENT),
    Link("NET103", ("KAF306", "TCP103"), _CLIENT),
    # Other protocols.
    Link("MQT124", ("TCP103", "NET103", "MQT105", "MQT107", "MQT114"), _CLIENT),
    Link("TCP103", ("MON103", "MQT105"), ("flow",)),
    Link("TCP107", ("TCP103", "NET103"), _CLIENT),
    Link("TCP108", ("TCP103", "NET103", "KAF303", "MON103", "MQT131"), _CLIENT),
    Link("NET101", _MONGO_SUFFERS, _WAY),
    Link("NET101", (*_MQTT_SUFFERS, "MQT103", "MQT104"), ("flow", "client")),
    Link("TCP101", ("MON101", "MON103", "MON112"), _WAY),
    Link("TCP104", ("MON103", "MON107", "MON112"), ("server",)),
    Link("TCP103", ("MON107", "MON112"), ("server", "client", "address")),
    Link("TCP102", (*_MONGO_SUFFERS, "MON104", "MON111"), ("flow", "client")),
    Link("TCP102", (*_MQTT_SUFFERS, "MQT103", "MQT104", "MQT108"), ("flow", "client")),
    # A server closes a connection on a malformed packet (MQTT 5.0, 4.13.1), and what was open on it stays open.
    Link("MQT117", ("MQT105", "MQT106", "MQT107", "MQT108", "MQT111"), ("flow", "client")),
    Link("MQT102", (*_MQTT_SUFFERS, "MQT103", "MQT104"), _CLIENT),
    Link("MQT154", _MQTT_SUFFERS, _CLIENT),
    Link("MQT132", (*_MQTT_SUFFERS, "MQT103", "MQT104", "MQT131", "NET103"), ("server",)),
    # The connection whose will went out late had fallen silent before: that is how it comes late.
    Link("MQT126", ("MQT103", "MQT104"), _CLIENT),
    Link("MQT104", (*_MQTT_SUFFERS, "MQT103"), ("flow", "client")),
    Link("MQT103", _MQTT_SUFFERS, ("flow", "client")),
    Link("MQT105", ("MQT107", "MQT108", "MQT115", "MQT119"), ("flow", "client")),
    # A server may refuse what is above its Receive Maximum one by one (0x97).
    Link("MQT108", ("MQT111",), ("flow", "client")),
    Link("MQT109", ("MQT111", "MQT114", "MQT115"), ("flow", "client")),
    Link("MQT120", ("MQT115", "MQT123"), ("topic", "client")),
    Link("MQT122", ("MQT114", "NET103"), _CLIENT),
    Link("MQT130", ("MQT115",), ("topic",)),
    # An application of MongoDB: how it asks comes before what that costs.
    Link("MON102", ("MON103", "MON107", "MON112", "NET103"), ("client",), of=_MONGO_LOSES_CONNECTIONS),
    # Who turns away after the hello comes back on another connection.
    Link("MON117", ("MON107", "MON127"), ("client",)),
    Link("MON127", ("MON107",), ("client",)),
    Link("MON116", ("MON101", "MON103", "MON107", "MON112", "MON114", "TCP103"), ("server",)),
    Link("MON105", ("MON101", "MON114"), ("client",)),
    # What takes the time is told by both; who waits for a connection is in trouble whatever the request.
    Link("MON114", ("MON101", "MON103"), ("client",)),
    Link("MON101", ("MON103",), ("client",)),
    # Answers that may only be missing from the capture explain nothing.
    Link("MON103", ("MON107", "MON112"), ("client",), of=("server", "client", "open")),
    Link("MON107", ("MON109",), ("client",)),
    Link("MON130", ("MON102",), ("client",)),
    Link("MON147", ("MON102",), ("client",)),
    Link("MON129", ("MON118", "MON119"), ("client",)),
    # What others reckon with a field that somebody set to a text is refused.
    Link("MON129", ("MON102",), ("client",), lasts=True),
    Link("MON122", ("MON101", "MON113"), ("client",)),
    Link("MON124", ("MON101",), ("client",)),
    # A session whose transaction stays open cannot be used again.
    Link("MON111", ("MON121",), ("client",)),
    # What the write of somebody else meets while a transaction holds its document.
    Link("MON125", ("MON101", "MON102"), ("client",)),
    # The error at which an ordered insert stopped.
    Link("MON123", ("MON102",), ("client",), of=("ordered",)),
    # The capture itself.
    Link("CAP105", ("CAP101", "CAP102"), ("capture",)),
    Link("CAP103", ("CAP107",), ("capture",)),
)  # fmt: skip
