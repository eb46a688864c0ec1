"""Remarks of one conversation: the rules that its packets broke, as rows of `expert_infos`.

In: the code of a rule and words about this case. Out: rows, no more than the limits allow.
"""

from __future__ import annotations

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.remarks import Place, place_of
from wirewitness.dissectors.core.rows import expert_row
from wirewitness.dissectors.mqtt.connection import Connection
from wirewitness.dissectors.mqtt.output import Output
from wirewitness.dissectors.mqtt.rules import LIMIT_TEXTS, RULES, clause

# Remarks of one kind for one flow; further ones would push out other kinds.
MAX_SAME_REMARKS = 20


class Remarks:
    """Counts what was remarked on one flow."""

    __slots__ = ("_all", "_connection", "_last", "_most", "_same")

    def __init__(self, limits: Limits, connection: Connection) -> None:
        self._most = limits.max_expert_infos
        self._connection = connection
        self._all = 0
        self._same: dict[str, int] = {}
        self._last: Place | None = None

    def add(self, frame: Frame, out: Output, code: str, text: str, at: int | None = None) -> None:
        """Remark on a packet, or on its bytes from position `at` of the frame's data on."""
        self.add_at(place_of(frame), out, code, text, moved=0 if at is None else at - frame.start)

    def once(self, frame: Frame, out: Output, code: str, text: str) -> None:
        """A remark that one flow gets once."""
        if code not in self._same:
            self.add(frame, out, code, text)

    def limit(self, frame: Frame, out: Output, code: str) -> None:
        """A limit of this program was reached: said once, however many other remarks there are."""
        if code not in self._same:
            self._same[code] = 1
            self._tell(place_of(frame), out, code, LIMIT_TEXTS[code])

    def finish(self, out: Output) -> None:
        """Say how many remarks were left out."""
        if self._last is not None:
            direction, _, _, packet, ts_ns = self._last
            rule = RULES["expert_infos"]
            text = f"{sum(self._same.values()) - self._all} further remarks on this connection were not kept"
            told = (rule.severity, rule.group, "expert_infos", text)
            out.sink.expert(expert_row(direction=direction, packet=packet, ts=ts_ns, remark=told))
            self._last = None

    def unpaired(self, frame: Frame, out: Output, code: str, text: str) -> None:
        """On an answer without its request: odd only where the capture holds all that went before."""
        expected = not self._connection.all_seen or bool(self._connection.session_present)
        self.add_at(place_of(frame), out, code, text, "note" if expected else None)

    def add_at(
        self, place: Place, out: Output, code: str, text: str, severity: str | None = None, moved: int = 0
    ) -> None:
        """Remark on a message, or on its bytes from the one at `moved` on."""
        same = self._same.get(code, 0)
        self._same[code] = same + 1
        if same >= MAX_SAME_REMARKS or self._all >= self._most:
            self._last = place
        else:
            self._tell(place, out, code, text, severity, moved)

    def _tell(
        self, place: Place, out: Output, code: str, text: str, severity: str | None = None, moved: int = 0
    ) -> None:
        self._all += 1
        direction, offset, length, packet, ts_ns = place
        rule = RULES[code]
        span = f"{offset + moved}-{offset + max(length, moved + 1) - 1}"
        told = (severity or rule.severity, rule.group, code, text + clause(code, self._connection.level, direction))
        out.sink.expert(
            expert_row(direction=direction, stream_offset=offset, packet=packet, ts=ts_ns, remark=told, span=span)
        )
