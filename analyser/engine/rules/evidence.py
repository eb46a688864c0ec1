"""What proves a finding, and when it was on the wire. In: rows of messages, remarks or exchanges. Out: `Proof`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wirewitness.analyser.engine.rules.findings import Evidence

_Columns = tuple[str, str, str]
# Columns of expert_infos that `proof_of` wants.
REMARK_COLUMNS = ("ts", "file", "packet", "message_id")
_OF_REMARKS: _Columns = ("file", "packet", "message_id")


class Proof(NamedTuple):
    """Times of the first and last evidence (Unix ns; None is unknown), and the evidence in the order of the wire.

    evidence: as much as there is; a finding keeps `some_evidence` of it.
    """

    ts_first_ns: int | None
    ts_last_ns: int | None
    evidence: Iterable[Evidence]


def proof_of(rows: Sequence[Mapping[str, Any]], columns: _Columns = _OF_REMARKS) -> Proof:
    """These rows as proof; at least one. columns: their file, packet and message id."""
    known = [row["ts"] for row in rows if row["ts"] is not None]
    return Proof(min(known, default=None), max(known, default=None), evidence_of(rows, columns))


def evidence_of(rows: Iterable[Mapping[str, Any]], columns: _Columns = _OF_REMARKS) -> Iterator[Evidence]:
    """The message of each row. columns: as in `proof_of`."""
    return (Evidence(*(row[name] for name in columns)) for row in rows)


def evidence_of_ids(ids: Iterable[str | None]) -> list[Evidence]:
    """Exchanges or messages by their ids, each once; None is left out."""
    return [Evidence(None, None, one) for one in dict.fromkeys(ids) if one]
