"""TLS for reading along: the data inside the records of one direction, with the place of each piece in the stream.

In: both hellos, a ring of keys, and the outer bytes. Out: data, where some is missing, and remarks. What a record lacks
to be opened is noted in the connection's `Encryption`; once nothing can be opened any more, nothing is looked at.

Behind a loss, or where a record is not what it says, the next record that a key opens is searched (`search.py`,
`opener.py`): so it is known how many are missing, and no byte is taken for data that is none.
Sources: RFC 8446, 5; RFC 5246, 6.2.
"""

from __future__ import annotations

from typing import Any

from wirewitness.dissectors.carriers.tls.alerts import CLOSE_NOTIFY, LEVELS, alert_name
from wirewitness.dissectors.carriers.tls.hello import (
    ALERT,
    APPLICATION_DATA,
    CHANGE_CIPHER_SPEC,
    CLIENT_HELLO,
    HANDSHAKE,
    RECORD_HEADER_BYTES,
    TLS_12,
    Hellos,
)
from wirewitness.dissectors.carriers.tls.keylog import KeyRing
from wirewitness.dissectors.carriers.tls.messages import (
    END_OF_EARLY_DATA,
    FINISHED,
    HELLO_REQUEST,
    KEY_UPDATE,
    Messages,
)
from wirewitness.dissectors.carriers.tls.opener import EarlyData, Opener, whole_records
from wirewitness.dissectors.carriers.tls.schedule import DATA, EARLY
from wirewitness.dissectors.carriers.tls.schedule import HANDSHAKE as HANDSHAKE_KEYS
from wirewitness.dissectors.carriers.tls.search import MOST_RECORD_BYTES, RecordSearch
from wirewitness.dissectors.carriers.tls.suites import suite_of
from wirewitness.dissectors.core.carrier import Carried, Interrupted, Item, Pieces, Told
from wirewitness.dissectors.core.encryption import (
    DECRYPTED,
    LOST,
    NO_KEY,
    UNSUPPORTED,
    UNSUPPORTED_VERSION,
    WRONG_KEY,
    Encryption,
)
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import SERVER_TO_CLIENT

# So many records that no key opens, from the first one on, and it is another key; early data may be refused.
_MOST_REFUSED, _MOST_REFUSED_EARLY = 16, 256
# A record takes so many bytes at least.
_LEAST_RECORD_BYTES = 22
# What waits for a key that may still come.
_MOST_WAITING_BYTES = 1 << 16
# Types of records: those that RFC 8446 names, and heartbeats.
_KINDS = range(CHANGE_CIPHER_SPEC, APPLICATION_DATA + 2)


class TlsUnwrapper:
    """One direction. Kept without keys: `use` gives them again."""

    headers: list[tuple[int, int]] | None = None

    def __init__(self, direction: int, hellos: Hellos, facts: Encryption, ring: KeyRing, limits: Limits) -> None:
        server = hellos.server
        suite = suite_of(server.cipher) if server.version >= TLS_12 and not server.compression else None
        self._direction, self._facts, self._most_remarks = direction, facts, limits.max_expert_infos
        self._is_13 = server.is_13
        self._client_random = hellos.client.random
        self._unsupported = UNSUPPORTED if server.version >= TLS_12 else UNSUPPORTED_VERSION
        self._supported = suite is not None
        self._ring: KeyRing | None = ring
        self._opener = Opener(direction, hellos, suite, ring, limits.tls_tries)
        self._messages = Messages(direction, self._is_13, facts)
        self._early = EarlyData()
        self._buffer = bytearray()
        self._start = self._skip = self._refused = self._remarks = 0
        self._sealed = self._interrupted = self._lossy = False
        self._search: RecordSearch | None = None
        self._waits_for = -1
        self._found: list[Item] = []
        self.over = False

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ring": None}

    def use(self, ring: KeyRing) -> None:
        """Look keys up in this ring from here on."""
        self._ring = ring
        self._waits_for = -1
        self._opener.use(ring)

    @property
    def held_bytes(self) -> int:
        """Outer bytes up to the latest that were not given out yet and still may be."""
        first = self._early.start
        return self._start + len(self._buffer) - (self._start if first is None else first)

    @property
    def searched_from(self) -> int | None:
        """Outer offset since which no record was found; None while records are read."""
        return None if self._search is None else self._search.since

    def feed(self, data: bytes, offset: int) -> list[Item]:
        """See `Unwrapper.feed`."""
        if self.over:
            return []
        self._opener.allow(len(data))
        if self._skip:
            skipped = min(self._skip, len(data))
            self._skip -= skipped
            data, offset = data[skipped:], offset + skipped
        if not self._buffer:
            self._start = offset
        self._buffer += data
        if not self._waits():
            self._read()
        return self._take()

    def feed_many(self, data: bytes, offset: int) -> Pieces | None:
        """See `Unwrapper.feed_many`: whole records with nothing but data, while it is known which come."""
        keys = self._opener.keys
        is_ordinary = keys is not None and self._sealed and self._search is None and self._opener.epoch == DATA
        if self.over or self._skip or self._waits_for >= 0 or keys is None or not is_ordinary:
            return None
        if self._buffer:
            data, offset, held = bytes(self._buffer) + data, self._start, len(self._buffer)
        else:
            held = 0
        records = whole_records(data, offset, keys, self._opener.number, is_13=self._is_13)
        if not records.used and held:
            return None
        self._opener.number += records.opened
        left = data[records.used :] if records.is_all else b""
        self._buffer, self._start = bytearray(left), offset + records.used
        used = records.used + len(left) - held
        self._opener.allow(used)
        if records.data:
            self._interrupted = False
        return Pieces(records.data, records.starts, records.behind, used)

    def gap(self, size: int, offset: int) -> list[Item]:
        """See `Unwrapper.gap`. Inside one record it is known where the next one begins."""
        if self.over:
            return []
        if not self._sealed and not self._opener.has_secrets:
            self._end(NO_KEY if self._supported else self._unsupported)
            return self._take()
        left, is_begun = self._skip or self._bytes_left(), bool(self._buffer) and not self._skip
        inside = self._search is None and left > 0 and size <= left
        if is_begun:
            self._opener.passed()
        self._buffer.clear()
        self._messages.forget()
        self._interrupt()
        if inside:
            self._skip = left - size
            self._note_loss()
        else:
            self._skip = 0
            search = self._search
            before = 0 if search is None else search.lost_bytes + offset - search.since
            self._look_from(offset + size, before + size)
        self._sealed = True
        return self._take()

    def _bytes_left(self) -> int:
        """Of the record that is being read; 0 while nobody knows."""
        if len(self._buffer) < RECORD_HEADER_BYTES:
            return 0
        return RECORD_HEADER_BYTES + int.from_bytes(self._buffer[3:5]) - len(self._buffer)

    def _waits(self) -> bool:
        """Is there still no key that may come?"""
        version = -1 if self._ring is None else self._ring.version
        if self._waits_for >= 0 and self._waits_for == version and len(self._buffer) <= _MOST_WAITING_BYTES:
            return True
        self._waits_for = -1
        return False

    def _take(self) -> list[Item]:
        found, self._found = self._found, []
        return found

    def _end(self, state: str) -> None:
        """Nothing can be opened any more."""
        self._note(state)
        self.over = True
        self._search = None
        self._early.refused()
        self._buffer.clear()

    def _note(self, state: str) -> None:
        facts = self._facts
        facts.sides[self._direction] = state
        if state == NO_KEY and self._ring is not None and facts.client_random is not None:
            facts.tried |= self._ring.kinds(facts.client_random, facts.session_id or b"")

    def _read(self) -> None:
        """All whole records of the buffer."""
        at = 0
        buffer = self._buffer
        while not self.over and self._waits_for < 0:
            if self._search is not None:
                self._drop(at)
                at = 0
                if not self._found_again(self._search):
                    return
                continue
            if at + RECORD_HEADER_BYTES > len(buffer):
                break
            kind, size = buffer[at], int.from_bytes(buffer[at + 3 : at + 5])
            if kind not in _KINDS or buffer[at + 1] != 3 or size > MOST_RECORD_BYTES:
                self._damaged(self._start + at, "no TLS record begins where the last one ended")
                continue
            end = at + RECORD_HEADER_BYTES + size
            if end > len(buffer):
                break
            if self._record(kind, bytes(buffer[at + RECORD_HEADER_BYTES : end]), self._start + at):
                at = end
        if not self.over:
            self._drop(at)

    def _drop(self, size: int) -> None:
        del self._buffer[:size]
        self._start += size

    def _record(self, kind: int, record: bytes, start: int) -> bool:
        """Take one record, which begins at this outer offset; False when it is not done with."""
        if not self._sealed and (kind != APPLICATION_DATA or not self._is_13):
            self._clear(kind, record, start)
            return True
        self._sealed = True
        if kind == CHANGE_CIPHER_SPEC:  # TLS 1.3 sends some for what lies between
            return True
        epoch, is_first = self._opener.epoch, self._opener.keys is None
        content = self._opener.open(kind, record)
        if content is None:
            return self._not_opened(start, is_first=is_first)
        if is_first:
            self._reached(epoch)
        self._opened(kind, content, start, RECORD_HEADER_BYTES + len(record))
        return True

    def _clear(self, kind: int, record: bytes, start: int) -> None:
        """A record in the clear, before there are keys."""
        if kind == CHANGE_CIPHER_SPEC and not self._is_13:
            self._sealed = True
            if self._direction == SERVER_TO_CLIENT:
                self._facts.resumed = not self._messages.full
                self._facts.tickets = self._facts.tickets or 0
        elif kind == HANDSHAKE:
            for _ in self._messages.feed(record):
                pass  # what is not encrypted changes no key
            self._tell_unreadable(start)

    def _reached(self, epoch: int) -> None:
        """A record was opened under other keys than those before it, or behind a loss. epoch: the one expected."""
        if epoch != self._opener.epoch:
            self._early.refused()
        self._refused = 0
        self._facts.opened = True
        self._note(LOST if self._lossy else DECRYPTED)

    def _not_opened(self, start: int, *, is_first: bool) -> bool:
        opener = self._opener
        if not self._supported:
            self._end(self._unsupported)
        elif not opener.can_go_on:
            return self._no_key(start)
        elif not is_first or (opener.has_opened and self._lossy):
            self._damaged(start, "a TLS record has a wrong tag: it is damaged, or its length lies")
            return False
        else:
            opener.passed()
            self._refused += 1
            self._note(WRONG_KEY)  # unless one of the next is opened
            is_early = opener.epoch == EARLY
            if is_early:
                self._interrupt()
            if self._refused > (_MOST_REFUSED_EARLY if is_early else _MOST_REFUSED):
                text = "the key that was logged for this connection opens none of its records"
                self._tell("warn", "tls_wrong_key", text, start)
                self._end(WRONG_KEY)
        return True

    def _no_key(self, start: int) -> bool:
        """There is no key: one may come, or not."""
        ring = self._ring
        if ring is not None and ring.may_grow and len(self._buffer) <= _MOST_WAITING_BYTES:
            self._waits_for = ring.version
            self._note(NO_KEY)
            return False
        if ring is not None and len(ring):
            text = f"no key log has a secret for the client random {self._client_random.hex()}"
            self._tell("chat", "tls_no_key", text, start)
        self._end(NO_KEY)
        return True

    def _opened(self, kind: int, content: bytes, start: int, size: int) -> None:
        """What a record held."""
        begin = start + RECORD_HEADER_BYTES + self._opener.lead
        if self._is_13:
            content = content.rstrip(b"\0") if content[-1:] == b"\0" else content
            if not content:
                return
            kind, content = content[-1], content[:-1]
        if self.headers is not None:
            data_bytes = len(content) if kind == APPLICATION_DATA else 0
            self.headers += [(start, begin), (begin + data_bytes, start + size)]
        if kind == APPLICATION_DATA:
            if content:
                self._data(Carried(content, begin, begin + len(content), start + size))
        elif kind == HANDSHAKE:
            self._turns(content, start)
        elif kind == ALERT and len(content) == 2 and content[0] in LEVELS:
            self._alert(content[0], content[1], start)

    def _data(self, piece: Carried) -> None:
        if self._opener.epoch == EARLY:
            self._early.add(piece)
            return
        self._found.append(piece)
        self._interrupted = False

    def _turns(self, content: bytes, start: int) -> None:
        """Handshake messages: some of them change the keys."""
        opener = self._opener
        for kind in self._messages.feed(content):
            if not self._is_13:
                if kind in (HELLO_REQUEST, CLIENT_HELLO):
                    self._tell("warn", "tls_renegotiation", "the keys are renegotiated: not decrypted from here", start)
                    self._end(UNSUPPORTED)
                    return
            elif kind == END_OF_EARLY_DATA and opener.epoch == EARLY:
                self._found += self._early.taken()
                opener.turn(HANDSHAKE_KEYS, 0)
            elif kind == FINISHED and opener.epoch != DATA:
                opener.turn(DATA, 0)
                if self._direction == SERVER_TO_CLIENT:
                    self._facts.tickets = self._facts.tickets or 0
            elif kind == KEY_UPDATE and opener.epoch == DATA:
                opener.turn(DATA, opener.generation + 1)
        self._tell_unreadable(start)

    def _tell_unreadable(self, start: int) -> None:
        if self._messages.unreadable:
            self._messages.unreadable = False
            self._tell("warn", "tls_certificate", "a certificate cannot be read", start)

    def _alert(self, level: int, code: int, start: int) -> None:
        if code == CLOSE_NOTIFY:
            return
        alerts, is_fatal = self._facts.alerts, level == max(LEVELS)
        if is_fatal or alerts[self._direction] is None:
            alerts[self._direction] = f"{LEVELS[level]} {alert_name(code)}"
        if is_fatal:
            what = "connection" if self._opener.epoch == DATA and self._opener.number > 1 else "handshake"
            text = f"the TLS {what} ended with an alert: {alert_name(code)} ({code})"
            self._tell("warn", "tls_alert", text, start, group="protocol")

    def _damaged(self, start: int, text: str) -> None:
        """Nothing is certain from this outer offset on; what follows is searched for records."""
        if not self._sealed and not self._opener.has_secrets:
            self._end(NO_KEY if self._supported else self._unsupported)
            return
        self._tell("warn", "tls_damaged_record", text, start)
        self._sealed = True
        self._interrupt()
        self._look_from(start + 1, MOST_RECORD_BYTES)

    def _look_from(self, since: int, lost_bytes: int) -> None:
        self._search = RecordSearch(since, lost_bytes)
        self._note_loss()

    def _note_loss(self) -> None:
        if self._sealed:
            self._lossy = True
            self._note(LOST)

    def _found_again(self, search: RecordSearch) -> bool:
        """Whether a record was found that a key opens; the buffer begins with what follows it then."""
        opener = self._opener
        before = opener.epoch, opener.generation, opener.number
        for place in search.whole(self._buffer, self._start):
            at = place - self._start
            kind, size = self._buffer[at], int.from_bytes(self._buffer[at + 3 : at + 5])
            record = bytes(self._buffer[at + RECORD_HEADER_BYTES : at + RECORD_HEADER_BYTES + size])
            numbers = 1 + (search.lost_bytes + place - search.since) // _LEAST_RECORD_BYTES
            content = opener.find(kind, record, numbers)
            if content is None:
                continue
            self._search = None
            self._reached(before[0])
            self._tell_loss(place - search.since, place, before)
            self._opened(kind, content, place, RECORD_HEADER_BYTES + size)
            if not self.over:
                self._drop(at + RECORD_HEADER_BYTES + size)
            return True
        self._drop(max(min(search.needed_from() - self._start, len(self._buffer)), 0))
        return False

    def _tell_loss(self, skipped: int, place: int, before: tuple[int, int, int]) -> None:
        """Say what is missing before the record that opened. before: which one was expected."""
        opener = self._opener
        is_same = before[:2] == (opener.epoch, opener.generation)
        lost = opener.number - 1 - before[2]
        many = f"{lost} TLS record{'' if lost == 1 else 's'}" if is_same else "TLS records"
        text = f"{many} could not be read, {skipped} bytes skipped; decryption goes on behind them"
        self._tell("warn", "tls_records_lost", text, place)

    def _interrupt(self) -> None:
        """Inner bytes are missing, nobody knows how many: once, however many records in a row are lost."""
        if not self._interrupted:
            self._found.append(Interrupted(0))
            self._interrupted = True

    def _tell(self, severity: str, code: str, text: str, start: int, group: str = "tls") -> None:
        """A remark on the record at `start`, as long as there are not too many."""
        self._remarks += 1
        if self._remarks == self._most_remarks:
            severity, code, text, group = "note", "remarks", "further remarks on TLS records are left out", "limit"
        if self._remarks <= self._most_remarks:
            self._found.append(Told(severity, group, code, text, start, start + RECORD_HEADER_BYTES))
