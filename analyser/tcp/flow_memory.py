"""What a flow takes of the memory for all, see `dissectors/core/budget.py`. In: a flow. Out: bytes, roughly."""

from __future__ import annotations

from wirewitness.analyser.tcp.flow import Flow
from wirewitness.analyser.tcp.notes import Note
from wirewitness.dissectors.core.budget import FLOW_BYTES

# A closed flow that is put away takes about this much; who waits with less than that gains nothing by letting go.
SHELVED_BYTES, LEAST_WAITING_BYTES = 1_000, 1_000


def held_by(flow: Flow) -> int:
    """All that an open flow takes."""
    held = FLOW_BYTES + (0 if flow.claims is None else flow.claims.held_bytes)
    held += flow.halves[0].pending_bytes + flow.halves[1].pending_bytes
    return held if flow.decoder is None else held + flow.decoder.held_bytes + flow.decoder.own_bytes


def waiting_bytes(flow: Flow) -> int:
    """What of it is given back when the flow waits no longer."""
    return flow.held_bytes - FLOW_BYTES - (0 if flow.decoder is None else flow.decoder.own_bytes)


def limit_note(flow: Flow, code: str, text: str) -> None:
    """Remark on the flow that a limit was reached."""
    add_note(flow, Note(code, text, flow.last_packet, flow.ts_last_ns, None, "warn", "limit"))


def add_note(flow: Flow, note: Note) -> None:
    """Remark on the flow."""
    half = flow.halves[0]
    half.notes = [*(half.notes or ()), note]
