"""Which keys one direction's records are under, in the order of time.

In: what both sides agreed on, and logged secrets. Out: what opens records.

TLS 1.2 has one key for each direction. TLS 1.3 has one for early data, one for the handshake, and those of the data,
each derived from the one before it (a generation) when its sender says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirewitness.dissectors.carriers.tls import keylog
from wirewitness.dissectors.carriers.tls.derive import key_block, next_secret, traffic_keys, unpadded
from wirewitness.dissectors.carriers.tls.hello import Hellos
from wirewitness.dissectors.carriers.tls.keylog import KeyRing
from wirewitness.dissectors.carriers.tls.suites import Suite
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER

if TYPE_CHECKING:
    from wirewitness.dissectors.carriers.tls.opening_records import RecordKeys

EARLY, HANDSHAKE, DATA = range(3)
_KINDS = {
    EARLY: (keylog.EARLY, None),
    HANDSHAKE: (keylog.CLIENT_HANDSHAKE, keylog.SERVER_HANDSHAKE),
    DATA: (keylog.CLIENT_TRAFFIC, keylog.SERVER_TRAFFIC),
}


class Schedule:
    """The keys of one direction. Its state is kept without keys; `use` gives it a ring again."""

    def __init__(self, direction: int, hellos: Hellos, suite: Suite | None, ring: KeyRing) -> None:
        self._direction, self._hellos, self._suite = direction, hellos, suite
        self.use(ring)

    def use(self, ring: KeyRing) -> None:
        """Look keys up in this ring from here on."""
        self._ring = ring
        self._version = ring.version
        self._made: dict[tuple[int, int], list[RecordKeys]] = {}
        self._chain: dict[int, tuple[int, list[bytes]]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"_direction": self._direction, "_hellos": self._hellos, "_suite": self._suite}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._direction, self._hellos, self._suite = state["_direction"], state["_hellos"], state["_suite"]
        self.use(KeyRing())

    @property
    def first(self) -> int:
        """What the first encrypted records may be under."""
        if not self._hellos.server.is_13:
            return DATA
        early = self._direction == CLIENT_TO_SERVER and self._hellos.client.early_data
        return EARLY if early else HANDSHAKE

    @property
    def has_any(self) -> bool:
        """Is there a secret for this connection and direction at all?"""
        return any(self._secrets(epoch) for epoch in range(self.first, DATA + 1))

    def keys(self, epoch: int, generation: int) -> list[RecordKeys]:
        """What may open the records; more than one where logs contradict each other."""
        if self._version != self._ring.version:
            self.use(self._ring)
        found = self._made.get((epoch, generation))
        if found is None:
            # Those of a generation before are not asked for again.
            self._made = {key: made for key, made in self._made.items() if key[0] != epoch or key[1] >= generation - 1}
            found = self._made[epoch, generation] = self._make(epoch, generation)
        return found

    def _make(self, epoch: int, generation: int) -> list[RecordKeys]:
        suite, server = self._suite, self._hellos.server
        if suite is None or not (secrets := self._secrets(epoch)):
            return []
        from wirewitness.dissectors.carriers.tls.opening_records import keys_of

        if not server.is_13:
            randoms = self._hellos.client.random, server.random
            made = [key_block(secret, randoms, suite)[self._direction] for secret in secrets]
        else:
            made = [traffic_keys(secret, suite) for secret in self._generation(epoch, generation, secrets, suite)]
        return [keys_of(suite, keys, is_13=server.is_13, mac_last=server.mac_last) for keys in made]

    def _generation(self, epoch: int, generation: int, secrets: tuple[bytes, ...], suite: Suite) -> list[bytes]:
        reached, chained = self._chain.get(epoch, (0, []))
        if not chained or reached > generation:
            reached, chained = 0, [unpadded(secret, suite) for secret in secrets]
        for _ in range(reached, generation):
            chained = [next_secret(secret, suite) for secret in chained]
        self._chain[epoch] = generation, chained
        return chained

    def _secrets(self, epoch: int) -> tuple[bytes, ...]:
        client, server = self._hellos.client, self._hellos.server
        if not server.is_13:
            found = self._ring.secrets(keylog.MASTER, client.random)
            by_id = self._ring.secrets(keylog.SESSION, server.session_id) if server.session_id else ()
            return found + by_id
        kind = _KINDS[epoch][self._direction]
        return () if kind is None else self._ring.secrets(kind, client.random)
