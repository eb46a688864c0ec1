"""Places that are closed: a text there is shown only where it is known to be harmless, or where content is asked for.

In: a text from such a place. Out: the same or `***`. People type passwords into the field of the user name, programs
put tokens into properties, and a text that says why somebody was refused may repeat what he sent: no form tells these
from ordinary words. Texts that programs are known to use are shown; those of the list are of brokers and clients
themselves, and have no room for anything else.
Sources: SaslServerAuthenticator, PlainServerCallbackHandler and ConsumerCoordinator of Kafka 4.3; KIP-800 (reasons);
consumer_group.go of franz-go; AuthenticationFailed of MongoDB;
MQTT 5.0, 2.4.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from wirewitness.dissectors.core.inspect import Hidden, Node
from wirewitness.dissectors.core.opaque import TRACEPARENT
from wirewitness.dissectors.core.secrets import MASK, masked

# Who did not say who he is.
_NOBODY = frozenset({"", "ANONYMOUS"})
_PRINCIPAL = "User:"
_TRACE = re.compile(TRACEPARENT)
_CLOSED_USER = re.compile(re.escape(MASK) + "[0-9a-f]{4}")
_MECHANISM = r"(?:SCRAM-SHA-(?:1|256|512)|PLAIN|GSSAPI|OAUTHBEARER)"
_HARMLESS = re.compile(
    "|".join(
        (
            # refused logins
            r"Authentication failed: (?:Invalid username or password|Invalid user credentials)",
            rf"Authentication failed during authentication due to invalid credentials with SASL mechanism {_MECHANISM}",
            r"Authentication failed: Client requested an authorization id that is different from username",
            r"SaslAuthenticate request received after successful authentication",
            r"Unsupported SASL mechanism(?: " + _MECHANISM + ")?",
            r"(?:bad auth ?:? ?)?[Aa]uthentication failed\.?", r'\{"status":"invalid_token"\}',
            # why a member of a group joins or leaves; a member is named by its id
            r"need to re-join with the given member-id: [\w.:-]{1,320}",
            r"[a-z ,]{0,80}(?:poll timeout|max\.poll\.interval)[\w .,()]{0,160}",
            r"the consumer (?:is being closed|unsubscribed from all topics)", r"group is (?:already )?rebalancing",
            r"cached metadata has changed", r"need to revoke partitions and re-join",
            r"beginning to manage the group lifecycle", r"client leaving group per normal operation",
            r"rejoining from normal rebalance", r"rejoin from [A-Z][A-Za-z]{2,40}",
            r"(?:cooperative rejoin )?after revoking what we lost from a rebalance",
            r"instance group leader restarted and was reassigned old plan, our topic interests changed and we must "
            r"rejoin to force a rebalance",
            # a topic that changed, in the words of several clients
            r"[a-z ,]{0,80}(?:topics have new partitions|is consuming have changed)[a-z ,]{0,120}",
            r"rebalance failed due to [A-Z][A-Za-z]{2,40}(?:Exception|Error)",
            r"rebalance enforced by user", r"triggered by (?:enforceRebalance from client|user)",
            r"(?:member was )?removed by an admin", r"Scheduled (?:probing|followup) rebalance", r"leaving",
            # what the codes of MQTT 5.0, 2.4, are called, which servers repeat in words
            r"(?i:(?:unspecified|protocol|implementation specific) error|malformed packet|not authori[sz]ed|"
            r"(?:bad user name or password|bad authentication method)|server (?:unavailable|busy|shutting down|moved)|"
            r"banned|keep alive timeout|session (?:taken over|takeover)|"
            r"(?:topic (?:filter|name|alias)|client identifier) (?:invalid|not valid)|"
            r"packet identifier (?:in use|not found)|(?:receive maximum|quota|connection rate) "
            r"exceeded|packet too large|message rate too high|administrative action|payload format invalid|"
            r"(?:retain|qos|shared subscriptions|subscription identifiers|wildcard subscriptions) not supported|"
            r"use another server|maximum connect time|unsupported protocol version)",
        )
    )
)  # fmt: skip


def closed_text(text: str) -> str:
    """A reason or an error of a login."""
    if not text or _HARMLESS.fullmatch(text) is not None:
        return masked(text, is_name=True)
    return MASK


def closed_user(name: str) -> str:
    """A user name, as `***` and four hex digits: two users stay two. Of a principal (`User:ada`) the kind stays."""
    front = _PRINCIPAL if name.startswith(_PRINCIPAL) else ""
    user = name[len(front) :]
    return name if user in _NOBODY or _CLOSED_USER.fullmatch(user) else front + MASK + _digest(user)


def _digest(user: str) -> str:
    """Of a digest so little that many names have the same: it tells users apart, and nobody what they are called."""
    return hashlib.blake2s(user.encode("utf-8", "surrogateescape"), digest_size=2).hexdigest()


def closed_pairs(pairs: str) -> str:
    """User properties as the JSON of a list of names and values: the names stay. What is no such list is closed."""
    try:
        return json.dumps(
            [[masked(name), _closed_value(name, value)] for name, value in json.loads(pairs)], ensure_ascii=False
        )
    except (ValueError, TypeError):
        return MASK


def closed_pair(pair: str) -> str:
    """A user property as a tree has it, `name: value`."""
    name, found, value = pair.partition(": ")
    return f"{name}: {_closed_value(name, value)}" if found and value else pair


def _closed_value(name: str, value: str) -> str:
    is_trace = name.lower() == "traceparent" and _TRACE.fullmatch(value) is not None
    return value if is_trace or not value else MASK


Closing = Callable[[str], str]


def close(nodes: Iterable[Node], names: Mapping[str, Closing]) -> Iterator[Hidden]:
    """Closes the values of the trees that stand under these names, and gives their bytes."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        waiting += node.children
        closing = names.get(node.name)
        if closing is None or not isinstance(node.value, str):
            continue
        shown = closing(node.value)
        if shown != node.value:
            # What stays stands in front of what does not, and is not overwritten.
            front = shown.partition(MASK)[0]
            kept = len(front) if node.value.startswith(front) else 0
            size = len(node.value[kept:].encode("utf-8", "surrogateescape"))
            node.value = shown
            yield Hidden(max(node.start, node.end - size), node.end, "secret")
