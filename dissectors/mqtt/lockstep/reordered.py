"""Messages whose packets a gap put in another order: what one side sent is read when the gap is given up, behind what
the other side sent meanwhile.

In: packets sorted by message, then in the order in which they are read. Out: those of whole messages whose order the
gap explains. Acknowledgements before their PUBLISH wait for it, and a message whose PUBCOMP is there waits for its
PUBREL; so nothing but its own packets tells what becomes of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Flags, Ints
from wirewitness.dissectors.mqtt.lockstep.packets import PUBACK, PUBCOMP, PUBLISH_1, PUBLISH_2, PUBREC, PUBREL

# PUBREL in front of PUBREC needs no form: it is in turn, see `handshakes.IN_TURN`.
_FORMS = (
    (PUBACK, PUBLISH_1),
    (PUBREC, PUBCOMP, PUBLISH_2, PUBREL),
    (PUBREC, PUBLISH_2, PUBREL, PUBCOMP),
    (PUBREC, PUBLISH_2, PUBCOMP, PUBREL),
    (PUBLISH_2, PUBREC, PUBCOMP, PUBREL),
)


class Turned(NamedTuple):
    """Messages, by their rows among sorted packets or their places among all frames. first, last: of their packets;
    publish; answer: PUBACK or PUBCOMP. Between first and last there is no row of any other message."""

    first: Ints
    publish: Ints
    answer: Ints
    last: Ints

    @classmethod
    def none(cls) -> Turned:
        """No message."""
        return cls(*np.zeros((4, 0), np.int64))

    def which(self, chosen: Flags) -> Turned:
        """Some of them."""
        return Turned(*(column[chosen] for column in self))

    def at(self, places: Ints) -> Turned:
        """The places of these rows."""
        return Turned(*(places[column] for column in self))

    def rows(self) -> Ints:
        """The rows of all their packets; not of places, between which others lie."""
        sizes = self.last - self.first + 1
        begins = np.cumsum(sizes) - sizes
        found: Ints = np.arange(sizes.sum()) + np.repeat(self.first - begins, sizes)
        return found

    @property
    def early(self) -> tuple[Ints, Ints]:
        """Acknowledgements in front of their PUBLISH, and that of each; at most two of a message."""
        begins, ends = self.first != self.publish, (self.answer < self.publish) & (self.answer != self.first)
        early = np.concatenate((self.first[begins], self.answer[ends]))
        return early, np.concatenate((self.publish[begins], self.publish[ends]))

    @property
    def at_once(self) -> Flags:
        """Is PUBACK or PUBCOMP in front of PUBLISH? Then no other packet of its sender finds the message in flight."""
        found: Flags = self.answer < self.publish
        return found


def turned(kind: Ints, key: Ints, ts_ns: Ints, latest_ns: Ints, clean: Flags, may_wait: Flags, lone: Flags) -> Turned:
    """The rows of such messages.

    latest_ns: what may be acknowledged by packets before each was not sent later. clean: in front of these nothing with
    their identifier is in flight. may_wait: messages of these have room to wait for PUBREL. lone: in front of these
    there may be a PUBREL without a message in flight, which takes the next PUBCOMP.
    """
    found = [Turned.none()]
    for form in _FORMS:
        publish, answer = (
            next(at for at, step in enumerate(form) if step in steps)
            for steps in ((PUBLISH_1, PUBLISH_2), (PUBACK, PUBCOMP))
        )
        first = np.flatnonzero(clean & (kind == form[0]))
        first = first[first + len(form) <= len(kind)]
        may = key[first] == key[first + len(form) - 1]
        for at, step in enumerate(form):
            may &= kind[first + at] == step
        first = first[may]
        sent = ts_ns[first + publish]
        may = sent > latest_ns[first]
        for at in range(publish):
            may &= ts_ns[first + at] >= sent
        if form[-1] == PUBREL:
            may &= may_wait[first] & (ts_ns[first + len(form) - 1] <= ts_ns[first + answer])
        if PUBCOMP in form[:publish]:
            may &= ~lone[first]
        first = first[may]
        found.append(Turned(first, first + publish, first + answer, first + len(form) - 1))
    return Turned(*(np.concatenate(columns) for columns in zip(*found, strict=True)))
