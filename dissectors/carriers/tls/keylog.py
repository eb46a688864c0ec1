"""Key logs of TLS: text that programs write for those who capture their traffic.

In: bytes of such files. Out: a `KeyRing`.

    CLIENT_RANDOM <client random> <master secret>                      TLS 1.2
    CLIENT_HANDSHAKE_TRAFFIC_SECRET <client random> <secret>           TLS 1.3; SERVER_..., CLIENT_TRAFFIC_SECRET_N, ...
    RSA Session-ID:<session id> Master-Key:<master secret>             TLS 1.2, by the id that the server gave

Secrets are kept in memory and nowhere else: a ring cannot be pickled, and no text of a log is repeated in a remark.
Sources: NSS Key Log Format (draft-ietf-tls-keylogfile), `openssl s_client`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from wirewitness.dissectors.carriers.tls.hello import Hellos

MASTER, SESSION, EARLY, CLIENT_HANDSHAKE, SERVER_HANDSHAKE, CLIENT_TRAFFIC, SERVER_TRAFFIC = range(7)
_LABELS = {
    b"CLIENT_RANDOM": MASTER,
    b"CLIENT_EARLY_TRAFFIC_SECRET": EARLY,
    b"CLIENT_HANDSHAKE_TRAFFIC_SECRET": CLIENT_HANDSHAKE,
    b"SERVER_HANDSHAKE_TRAFFIC_SECRET": SERVER_HANDSHAKE,
    b"CLIENT_TRAFFIC_SECRET_0": CLIENT_TRAFFIC,
    b"SERVER_TRAFFIC_SECRET_0": SERVER_TRAFFIC,
}
# A line with a secret; then what may stand there as well: later secrets follow from the first ones, exporters open
# nothing, and QUIC is another protocol. Blanks are taken once: a line of them costs its length, not its square.
_LINE = re.compile(
    rb"^[ \t]*+(?:(?P<label>" + b"|".join(_LABELS) + rb")"
    rb"[ \t]+(?P<id>[0-9a-fA-F]{64})[ \t]+(?P<secret>[0-9a-fA-F]{64,128})"
    rb"|RSA[ \t]+Session-ID:(?P<session>[0-9a-fA-F]{2,64})[ \t]+Master-Key:(?P<master>[0-9a-fA-F]{96})"
    rb"|(?P<other>(?:#|QUIC_|(?:CLIENT|SERVER)_TRAFFIC_SECRET_[1-9]|(?:EARLY_)?EXPORTER_SECRET|ECH_SECRET|ECH_CONFIG"
    rb"|RSA[ \t]+Session-ID:[ \t])[^\n]*)?)[ \t]*+\r?$",
    re.MULTILINE,
)
_MASTER_BYTES = 48
# A line of a key log has at most some 230 characters.
MOST_LINE_BYTES = 4096
# So many secrets are kept, the latest; about 250 bytes each.
MOST_SECRETS = 500_000


class KeyRing:
    """Secrets by what they are found by. version: rises when more come. may_grow: more can come while it is used."""

    def __init__(self, most: int = MOST_SECRETS) -> None:
        self.version = 0
        self.may_grow = False
        self.dropped = 0
        self._half = max(most // 2, 1)
        self._new: dict[bytes, tuple[bytes, ...]] = {}
        self._old: dict[bytes, tuple[bytes, ...]] = {}

    def __repr__(self) -> str:
        return f"KeyRing({len(self)} secrets)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("keys are not written anywhere")

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def add(self, kind: int, found_by: bytes, secret: bytes) -> None:
        """A secret of this kind, found by a client random or session id. The oldest leave when there are too many."""
        key = bytes([kind]) + found_by
        known = self._new.get(key) or self._old.get(key, ())
        if secret in known:
            return
        self.version += 1
        # Whoever logs wrong secrets for one connection without end fills nothing.
        self._new[key] = (secret, *known)[:4]
        if len(self._new) > self._half:
            self.dropped += len(self._old)
            self._old, self._new = self._new, {}

    def entries(self) -> dict[bytes, tuple[bytes, ...]]:
        """All of it, for another process that decodes a part of the same captures."""
        return {**self._old, **self._new}

    def merge(self, entries: Mapping[bytes, tuple[bytes, ...]]) -> None:
        """Add what `entries` of another ring gave."""
        for key, secrets in entries.items():
            for secret in reversed(secrets):
                self.add(key[0], key[1:], secret)

    def secrets(self, kind: int, found_by: bytes) -> tuple[bytes, ...]:
        """What was logged for it; more than one where logs contradict each other, the latest first."""
        key = bytes([kind]) + found_by
        return self._new.get(key) or self._old.get(key, ())

    def kinds(self, random: bytes, session_id: bytes) -> int:
        """The kinds of secrets that there are for a connection, as bits: more of them may open what some did not."""
        found = sum(1 << kind for kind in _LABELS.values() if self.secrets(kind, random))
        return found | (1 << SESSION if session_id and self.secrets(SESSION, session_id) else 0)


def lines_of(ring: KeyRing, hellos: Hellos) -> list[bytes]:
    """The lines of a log that open the connection which begins with these hellos; none where the ring has no secret."""
    random = hellos.client.random
    by_random = [(label, secret) for label, kind in _LABELS.items() for secret in ring.secrets(kind, random)]
    by_session = [(b"CLIENT_RANDOM", secret) for secret in ring.secrets(SESSION, hellos.server.session_id)]
    return [
        b"%s %s %s\n" % (label, random.hex().encode(), secret.hex().encode())
        for label, secret in by_random or by_session
    ]


class KeyLogReader:
    """Puts the secrets of one log into a ring. secrets, damaged: lines with one, and lines that nobody can read."""

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring
        self._rest = b""
        self._skipping = False
        self.secrets = self.damaged = 0
        # What the last line added to both while nobody knew whether it was whole.
        self._for_now = 0, 0

    def feed(self, data: bytes) -> None:
        """The next bytes of the log."""
        self.secrets, self.damaged = self.secrets - self._for_now[0], self.damaged - self._for_now[1]
        self._for_now = 0, 0
        text = self._rest + data
        cut = text.rfind(b"\n") + 1
        self._rest = text[cut:]
        if self._skipping and cut:
            text, cut = text[text.index(b"\n") + 1 :], cut - text.index(b"\n") - 1
            self._skipping = False
        if cut:
            self._lines(text[: cut - 1])
        if len(self._rest) > MOST_LINE_BYTES:
            self.damaged += not self._skipping
            self._rest, self._skipping = b"", True

    def end(self) -> None:
        """Nothing follows for now: what stands there without the end of a line is one, until more comes."""
        if self._rest and not self._skipping and self._for_now == (0, 0):
            before = self.secrets, self.damaged
            self._lines(self._rest)
            self._for_now = self.secrets - before[0], self.damaged - before[1]

    def _lines(self, text: bytes) -> None:
        read = 0
        for found in _LINE.finditer(text):
            read += 1
            if found["label"] is not None:
                self._secret(_LABELS[found["label"]], found["id"], found["secret"])
            elif found["session"] is not None:
                self._secret(SESSION, found["session"], found["master"])
        self.damaged += text.count(b"\n") + 1 - read

    def _secret(self, kind: int, found_by: bytes, secret: bytes) -> None:
        if len(secret) % 2 or len(found_by) % 2 or (kind == MASTER and len(secret) != 2 * _MASTER_BYTES):
            self.damaged += 1
            return
        self.secrets += 1
        self._ring.add(kind, bytes.fromhex(found_by.decode()), bytes.fromhex(secret.decode()))
