"""Which values of MongoDB messages are credentials.

In: the command and the keys on the way to a value. Out: whether it must not be shown, not even with --payload, or only
with it (closed). Values under names of credentials are kept back in documents as well: nobody needs them to
understand a capture.
Sources: driver authentication specification, createUser and updateUser (manual), client-side encryption (KMS).
"""

from __future__ import annotations

from collections.abc import Sequence

from wirewitness.dissectors.mongo.handshake import AUTHENTICATION, is_hello
from wirewitness.dissectors.mongo.known_commands import is_known
from wirewitness.dissectors.mongo.shown_fields import is_shown

MASK = "***"
# In the commands of an authentication, and in what a hello starts speculatively.
_OF_AUTHENTICATION = frozenset({"payload", "key", "nonce", "pwd"})
_SPECULATIVE = "speculativeAuthenticate"
# Anywhere.
_NAMES = frozenset({"jwt", "passphrase", "passwd", "pw", "pwd", "secret", "serverkey", "storedkey"})
# Anywhere, with words in front of it too: awsSecretAccessKey, ldapQueryPassword.
_LAST = (
    "accesstoken", "apikey", "apitoken", "authtoken", "clientsecret", "password", "privatekey", "refreshtoken",
    "secretaccesskey", "secretkey", "sessiontoken",
)  # fmt: skip


def is_secret(command: str | None, keys: Sequence[str]) -> bool:
    """Is the value under these keys, outermost first, a credential? command: of the request, for its reply as well."""
    name = keys[-1]
    plain = name.replace("_", "").replace("-", "").lower()
    if plain in _NAMES or plain.endswith(_LAST):
        return True
    return name in _OF_AUTHENTICATION and (command in AUTHENTICATION or _SPECULATIVE in keys[:-1])


# Of a login: who it is, and what the server says of it.
_CLOSED = frozenset({"user", "errmsg"})


def is_closed(command: str | None, keys: Sequence[str], *, asks: bool) -> bool:
    """Is it shown with --payload only, and overwritten like a credential? asks: it stands in a request."""
    if not keys:
        return False
    if command in AUTHENTICATION or _SPECULATIVE in keys[:-1]:
        return keys[-1] in _CLOSED or tuple(keys) == (command,)
    return asks and not is_known(command) and not is_shown(command, tuple(keys))


def may_hold_secrets(command: str | None) -> bool:
    """Is it a command of authentication or handshake, or one that nobody knows?"""
    return command is None or command in AUTHENTICATION or is_hello(command)
