"""What other rules say of a scenario that is about one of them, as the exhaustive run sees it, and why they are right.

Scenario -> (code, severity) of findings beside those that the scenario expects.
"""

from __future__ import annotations

# Somebody sets offsets back or forward, deletes a group or topic, adds partitions: KAF309 tells who.
_ADMIN = {
    "KAF103-an admin tool sets offsets back while the group is empty": {("KAF309", "info")},
    "KAF106-an admin tool resets once, a member comes later": {("KAF309", "info")},
    "KAF114-a topic made anew has other offsets": {("KAF309", "warning")},
    "KAF114-the offsets of another group were deleted": {("KAF309", "info")},
    "KAF121-a partition is added and read from its end after it was written to": {("KAF309", "info")},
    "KAF121-a tool sets a stopped group forward, to a member that is new": {("KAF106", "info"), ("KAF309", "warning")},
    "KAF121-the group was deleted, and begins again at latest": {("KAF309", "warning")},
}
# Nobody is left to read what is still written: KAF134 tells it as info.
_STOPPED = {"KAF107-a group that is stopped in order": {("KAF134", "info")}}
# Who goes back because the log was cut: KAF320 tells that it was.
_CUT = {
    "KAF103-the log was truncated, and the reader goes back to where the epoch ends": {("KAF320", "critical")},
    "KAF120-the reader goes back to where its epoch ends, and commits nothing from there": {("KAF320", "critical")},
}
# The client turns back by itself, which KAF120 tells as info.
_SEEKS = {
    "KAF102-a replay in a loop: every return is a seek": {("KAF120", "info")},
    "KAF103-a seek: the lower offset is fetched before it is committed": {("KAF120", "info")},
    "KAF129-the client turned back and works up to the same offset again": {("KAF120", "info")},
}
# A member that is silent holds its group up: KAF111 tells the silence, KAF126 what the others waited for.
_SILENT = {
    "KAF111-a frozen member comes back after its session": {("KAF126", "warning")},
    "KAF111-a member is gone for more than a minute": {("KAF126", "critical")},
    "KAF126-a frozen member comes back and is told that it is none any more": {("KAF111", "warning")},
    "KAF126-a frozen member holds its partitions for more than a minute": {("KAF111", "critical")},
    "KAF138-another name at each start": {("KAF111", "info"), ("KAF126", "info")},
    "KAF138-client ids that have the name in them": {("KAF111", "info"), ("KAF126", "info")},
    "KAF126-a killed member's session times out": {("KAF111", "warning")},
}
# Thrown out for its polls three times in five minutes: a churn, whatever record it is.
_THROWN_OUT = {
    "KAF119-in the end a commit passes it": {("KAF101", "info")},
    "KAF119-thrown out while nothing new is there: no record comes again": {("KAF116", "warning")},
}
# Requests that took long, whoever made them wait: MON116 speaks where many of a server's waited at once.
# Their finds are the same one again and again, of which MON119 tells.
_LONG = {
    "MON101-eleven of 2,760": {("MON119", "warning")},
    "MON101-seconds, but one of 300": {("MON119", "warning")},
    "MON101-for some seconds of a long time": {("MON119", "warning")},
    "MON101-what waited while the server stood still": {("MON119", "info")},
    "MON107-each does some work": {("MON119", "warning")},
    "MON116-for three seconds": {("MON119", "info")},
    "MON116-for an application with one shape, beside another": {("MON119", "warning")},
    "MON116-for less than a second": {("MON119", "info")},
    "MON116-one connection alone": {("MON101", "warning"), ("MON119", "warning")},
    "MON116-one shape of one application": {("MON101", "warning"), ("MON119", "warning")},
    "MON116-others are answered": {
        ("MON101", "warning"), ("MON101", "info"), ("MON105", "warning"), ("MON119", "info"),
    },
    "MON116-what takes long anyway": {("MON101", "warning"), ("MON119", "info")},
    "MON116-the capture stood still": {("MON119", "info")},
}  # fmt: skip
# Connections on which a driver says hello and nothing else, whatever the scenario makes of them.
_HELLOS = {
    "MON107-a storm": {("MON127", "info")},
    "MON107-a storm, and a clock that jumps by centuries": {("MON127", "info")},
    "MON107-a pool fills at the start": {("MON127", "info")},
    "MON107-busy all the time": {("MON127", "info")},
    "MON107-too short to know": {("MON127", "info")},
    "MON117-it advertises itself as well": {("MON127", "info")},
    "MON117-it advertised others before, and itself while the client asked": {("MON127", "info")},
    "MON117-a server alone": {("MON127", "info")},
    # The hosts cannot be reached, which MON117 tells.
    "MON127-the set has other hosts": {("MON117", "warning")},
}
# Who was refused or waited is told beside who or what stood in the way, in one incident.
_IN_THE_WAY = {
    "MON123-an ordered insert stops": {("MON102", "info")},
    "MON125-a second": {("MON102", "info")},
    "MON125-a moment": {("MON102", "info")},
    "MON125-many in vain": {("MON102", "info")},
    "MON125-the collection only": {("MON102", "info")},
    "MON125-a write waits until it commits": {("MON101", "warning")},
    "MON130-a job that runs twice": {("MON102", "warning")},
    # Each of these transactions stays open in a session of its own.
    "MON111-a flood of them is one finding": {("MON121", "warning")},
}
# Inserts are refused as duplicate keys, whoever inserted before.
_DUPLICATES = {
    "MON130-four times": {("MON102", "info")},
    "MON130-the same client": {("MON102", "warning")},
    "MON130-another document": {("MON102", "warning")},
    "MON130-a few of many": {("MON102", "info")},
}
# The server ends the connection of a device with a will, which MQT114 tells, delayed or not.
_WILL_LATER = {
    f"MQT151-{name}": {("MQT114", "info")}
    for name in (
        "a will in eight hours",
        "a will in an hour, and nobody else has one",
        "the will was due before",
        "the will goes with the session",
        "the will is not delayed",
        "a delayed will of one that comes back",
    )
}
# A device that dies without DISCONNECT: MQT103 tells how long it was silent, MQT114 that its will goes out.
_DIES = {
    **{
        f"MQT126-{name}": {("MQT103", "warning"), ("MQT114", "info")}
        for name in (
            "the old connection's will after the birth under another id",
            "under the same id, which the server leaves open",
            "and the device publishes again a minute later",
            "the will comes before the birth",
            "another device shares the topic, and was there before",
        )
    },
    **{
        f"MQT126-{name}": {("MQT114", "info")}
        for name in (
            "a retained will is served while its client is back",
            "the device comes back after its will",
            "a subscriber comes a second after the device",
            "the will was not retained",
        )
    },
}
# The filter that is asked for again has QoS 0 where 1 was asked for, and where it stands, no server here sends on it.
_GRANTED_LESS = {
    **{
        f"MQT127-{name}": {("MQT111", "info")}
        for name in (
            "nothing subscribed after a reconnect",
            "another filter instead",
            "nothing more is published",
            "it publishes itself",
            "other topics",
            "the capture ends too soon",
        )
    },
    **{
        f"MQT127-{name}": {("MQT111", "info"), ("MQT115", "warning")}
        for name in ("it subscribes again", "it subscribes to more than before", "the server has its session")
    },
}
# Pings without an answer, whoever gives up on them.
_PINGS = {
    "MON119-a change stream": {("MON132", "warning")},
    "MQT131-pings that are never answered": {("MQT104", "warning")},
    "MQT132-and are never answered": {("MQT104", "warning")},
    "MQT132-never answered by a server that goes on": {("MQT104", "warning")},
}
# The same made-up traffic, as other rules see it.
_ALSO = {
    "KAF122-a member takes over, and commits, too": {("KAF101", "info")},
    "KAF132-one group, six times": {("KAF116", "warning")},
    "KAF133-it goes on where the records end": {("KAF122", "warning")},
    "KAF133-twice as many as it came further": {("KAF122", "warning")},
    "MQT111-tries without a pause": {("NET103", "warning")},
    "MQT119-a server that keeps QoS 0 too": {("MQT111", "info")},
    "MQT119-both have QoS 0": {("MQT111", "info")},
    "MQT119-its subscription has QoS 0": {("MQT111", "info")},
    "MQT124-a subscriber ends each connection": {("MQT105", "warning")},
    "MQT124-a subscriber that never got it": {("MQT105", "warning")},
    "MQT124-a subscriber that takes its leave": {("MQT105", "warning")},
    "MQT126-and its last ping did not come": {("MQT104", "warning")},
    "MQT126-it was heard of when the other one was there": {("MQT104", "warning")},
    "MQT126-the end of the old connection is not seen": {("MQT103", "warning"), ("MQT104", "warning")},
}
BESIDE: dict[str, set[tuple[str, str]]] = {
    **_ALSO,
    **_CUT,
    **_STOPPED,
    **_LONG,
    **_HELLOS,
    **_IN_THE_WAY,
    **_DUPLICATES,
    **_DIES,
    **_WILL_LATER,
    **_GRANTED_LESS,
    **_PINGS,
    # Each subscriber that an alarm did not reach.
    "MQT130-six alarms that nobody gets": {("MQT115", "warning")},
    # A connection each four seconds, and nothing published.
    "MQT102-a session that one address resumes": {("MQT122", "warning")},
    # New filters without an end.
    "MQT128-thirty filters one by one": {("MQT137", "warning")},
    # A message that is sent on connection after connection is one without PUBACK, too.
    "MQT124-the client itself ends its connections": {("MQT105", "warning")},
    "MQT124-the server ends each connection": {("MQT105", "warning")},
    # Its other work asks one by one.
    "MON119-the same beside other work": {("MON105", "warning")},
    "MON115-refused": {("MON102", "warning")},
    "MON103-the replies come into closed sockets": {("MON101", "warning")},
    "MON107-connections that are used again and again": {("MON119", "warning")},
    "MON123-a bulkWrite stops": {("MON102", "info")},
    # Each insert that is refused.
    "MON147-two that meet at one number": {("MON102", "warning")},
    "MON147-four times each": {("MON102", "info")},
    "MON147-one of ten": {("MON102", "info")},
    "MON147-one client": {("MON102", "warning")},
    "MON147-the first one": {("MON102", "warning")},
    "MON147-another look in between": {("MON102", "warning")},
    "MON138-it was slow before": {("MON101", "warning")},
    "MON138-slow a while later": {("MON101", "info")},
    "MON138-a query is slow since": {("MON101", "warning")},
    "MON107-a client that gives up before the replies": {("MON101", "warning")},
    "MON110-the server refuses it already": {("MON102", "warning")},
    **_ADMIN,
    **_SEEKS,
    **_SILENT,
    **_THROWN_OUT,
    # A hand-over, once each time that it comes back.
    "KAF105-who joins again has a new member id and stores the refused offset": {("KAF101", "info")},
    # The stored offset went back, which KAF103 tells of any client.
    "KAF129-a refused commit is stored later over a newer one": {("KAF103", "warning")},
    "KAF129-and newer ones follow": {("KAF103", "warning")},
    "KAF129-a coordinator that moved refused it, and it stands for long": {("KAF103", "warning")},
    # Refused for 16 s at the same step of its way in.
    "KAF315-ten a second": {("KAF117", "warning")},
    # Each find waits for the way there and back, which MON101 measures.
    "MON105-far from the server": {("MON101", "warning")},
    # That logins and CONNECTs are refused is the cause of a storm, and told where there is none.
    "NET103-a device that may not connect": {("MQT111", "warning")},
    "NET103-four devices behind one address, each below the limit": {("MQT111", "warning")},
    "NET103-a client id made anew for each attempt": {("MQT111", "warning")},
    "NET103-devices that come back, each once": {("MQT111", "warning")},
    "NET104-the server says that it is busy": {("MQT111", "warning")},
    "NET103-a wrong password of MongoDB": {("MON102", "warning")},
    "NET103-an application that waits longer each time": {("MON102", "warning")},
    "NET103-devices behind one address, each with pauses": {("MQT111", "warning")},
    "NET103-logins ten times a second": {("KAF312", "critical")},
}
