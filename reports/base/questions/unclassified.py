"""Errors and missing answers that no rule judged. In: an analysis and its findings; out: kinds of errors, most first.

A kind is what one client got for one operation. Left out is what is everyday (`analyser/engine/rules/benign_errors.py`)
and
what a finding explains: its evidence has one of these exchanges, or it names the code and one of the clients, in that
time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from wirewitness.analyser.engine.rules.benign_errors import EVERYDAY, Everyday
from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.questions.failures import UNANSWERED
from wirewitness.reports.base.questions.source import Source, rows

# Kinds beyond these are not told apart any more: client ids are whatever was sent.
_MOST_KINDS = 2_000
# A finding explains errors of its clients so long before its first and behind its last evidence.
_BESIDE_NS = 30 * 1_000_000_000
# Names under which findings tell error codes, and codes that rules judge without naming them.
_CODE_NAMES = ("error_code", "code")
_JUDGED: dict[str, tuple[int, ...]] = {
    "KAF112": (22, 23, 25, 27), "KAF116": (22, 25, 27), "KAF119": (22, 25, 27, 82, 110), "KAF126": (22, 25, 27, 110),
    "KAF127": (22, 25, 27, 82, 110), "KAF128": (25, 27, 82), "KAF206": (45, 47, 48, 49, 51, 90),
    "KAF309": (3, 69, 100), "KAF311": (34,), "KAF316": (3, 69, 100, 103), "KAF308": (19, 20),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class UnjudgedErrors:
    """What one client got for one operation. status: error or unanswered. `*_ns`: Unix times of the first and last."""

    protocol: str | None
    cluster_id: str | None
    operation: str | None
    status: str
    error_code: int | None
    error_name: str | None
    client_id: str | None
    client_address: str | None
    exchanges: int
    first_ns: int
    last_ns: int

    @property
    def kind(self) -> tuple[Any, ...]:
        """What an exchange of this kind has in common with it."""
        return self.protocol, self.operation, self.error_code, self.client_id, self.client_address


_KIND = "protocol, operation, error_code, client_id, client_address"

_FAILED = f"""
    select exchange_id, protocol, cluster_id, operation, 'error' as status, error_code, error_name, client_id,
           client_address, ts
    from exchanges where status = 'error'
    union all
    select exchange_id, protocol, cluster_id, operation, 'unanswered', null, null, client_id, client_address, ts
    from ({UNANSWERED}) as missing"""


# Whatever the error, a client that gets it several times a second for a while does not go on.
_SPINS = "together >= 60 and span_s >= 2 and together > 5 * span_s"


def _everyday(entry: Everyday) -> str:
    """SQL: whether a failed exchange is of these. healed_s, left_s: until the next success, until the capture's end."""
    parts = [f"protocol = {literal(entry.protocol)}", f"error_code in ({', '.join(map(str, entry.codes))})"]
    if entry.operations:
        parts.append(f"operation in ({', '.join(map(literal, entry.operations))})")
    if entry.heals_s is not None:
        parts.append(f"(healed_s <= {entry.heals_s} or left_s <= {entry.heals_s})")
    return f"({' and '.join(parts)})"


_ERRORS = f"""
    with failed as ({_FAILED}),
    who as (select distinct protocol, operation, coalesce(client_id, '') as id, coalesce(client_address, '') as address
            from failed where status = 'error'),
    good as (select who.*, epoch_ns(e.ts) as ns from exchanges e join who
             on e.protocol = who.protocol and e.operation = who.operation and coalesce(e.client_id, '') = who.id
                and coalesce(e.client_address, '') = who.address
             where e.status = 'ok'),
    ends as (select max(epoch_ns(ts_last)) as ns from flows),
    told as (select failed.*, epoch_ns(failed.ts) as begun_ns, (good.ns - epoch_ns(failed.ts)) / 1e9 as healed_s,
                    (ends.ns - epoch_ns(failed.ts)) / 1e9 as left_s,
                    count(*) over kind as together,
                    (max(epoch_ns(failed.ts)) over kind - min(epoch_ns(failed.ts)) over kind) / 1e9 as span_s
             from failed cross join ends asof left join good
             on failed.protocol = good.protocol and failed.operation = good.operation
                and coalesce(failed.client_id, '') = good.id and coalesce(failed.client_address, '') = good.address
                and epoch_ns(failed.ts) < good.ns
             window kind as (partition by failed.protocol, failed.operation, failed.error_code, failed.client_id,
                             failed.client_address))
    select {_KIND}, any_value(cluster_id) as cluster_id, status, any_value(error_name) as error_name,
           count(*) as exchanges, min(begun_ns) as first_ns, max(begun_ns) as last_ns
    from told where not coalesce({" or ".join(_everyday(entry) for entry in EVERYDAY)}, false) or ({_SPINS})
    group by {_KIND}, status order by exchanges desc, first_ns, operation limit {_MOST_KINDS}"""


def unjudged_errors(source: Source, found: Sequence[Finding]) -> list[UnjudgedErrors]:
    """Kinds of errors that no finding explains, most frequent first."""
    kinds = [UnjudgedErrors(**row) for row in rows(source, _ERRORS)]
    if not kinds or not found:
        return kinds
    proven = _proven(source)
    named = [names for finding in found for names in _named(finding)]
    return [kind for kind in kinds if kind.kind not in proven and not any(n.explains(kind) for n in named)]


# Kinds of the exchanges that are evidence. Ids come from the table of findings: there may be many thousands.
_PROVEN = f"""
    with evidence as (
        select distinct unnest(json_extract_string(
            case when json_valid(evidence) then evidence else '[]' end, '$[*].message_id')) as id from findings)
    select distinct {_KIND} from exchanges
    where status in ('error', 'unanswered')
      and (exchange_id in (from evidence) or response_message_id in (from evidence))"""


def _proven(source: Source) -> set[tuple[Any, ...]]:
    return {tuple(row.values()) for row in rows(source, _PROVEN)}


class _Named(NamedTuple):
    """An error that a finding names, its clients (none: any) and its time."""

    code: int
    clients: frozenset[tuple[str | None, str | None]]
    first_ns: int
    last_ns: int

    def explains(self, kind: UnjudgedErrors) -> bool:
        in_time = kind.last_ns >= self.first_ns and kind.first_ns <= self.last_ns
        who = (kind.client_address, kind.client_id)
        return in_time and self.code == kind.error_code and (not self.clients or who in self.clients)


def _named(finding: Finding) -> Iterator[_Named]:
    """The errors that it names, with its clients."""
    if finding.first_ns is None or finding.last_ns is None:
        return
    numbers = finding.numbers
    codes = {numbers.get(name) for name in _CODE_NAMES}
    codes |= {*_JUDGED.get(finding.code, ())}
    codes |= {int(code) for code in numbers.get("errors") or () if str(code).lstrip("-").isdecimal()}
    clients = frozenset((c.get("address"), c.get("client_id")) for c in finding.everybody)
    for code in codes:
        if isinstance(code, int) and not isinstance(code, bool):
            yield _Named(code, clients, finding.first_ns - _BESIDE_NS, finding.last_ns + _BESIDE_NS)
