"""The findings of a report, one block per cause: what, what followed, who, which packets, what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from wirewitness.analyser.base.addresses import client_endpoint_text, server_text
from wirewitness.analyser.base.times import span_text
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.numbers import default_title
from wirewitness.reports.base.formats.document import (
    Block,
    Cells,
    Copy,
    Heading,
    Paragraph,
    Section,
    severity_tone,
    without_empty,
)
from wirewitness.reports.base.formats.values import ms_text
from wirewitness.reports.base.formats.words import display_filter, first_sentence, partition_list, ranges
from wirewitness.reports.base.questions.causes import Cause, Finding
from wirewitness.reports.base.questions.reviews import Judged
from wirewitness.reports.base.questions.source import Source, all_rows
from wirewitness.reports.report.finding_committers import Connection, committer_table, plain
from wirewitness.reports.report.reviewed import grown_blocks

_CAUSES_LISTED = 20
_CAUSES_TOLD = 50
_COMMITTERS_SHOWN = 12
_PACKETS_SHOWN = 24
_PLACES_SHOWN = 4
_FOLLOWERS_SHOWN = 8
# A consequence is told in about so many characters.
_SHORT = 200
# Member ids are long, and stand in the findings themselves.
_MEMBER = re.compile(r" \((?:member|no member id)[^()]*\)")
_PARTITIONS_MEASURED = 8
_MEASURES_SHOWN = 4


def finding_section(
    source: Source,
    causes: Sequence[Cause],
    judged: Judged | None = None,
    first_causes: Mapping[str, str] = MappingProxyType({}),
) -> Section:
    """All causes, worst first. judged: what was looked at before; of what has grown since, that is said. first_causes:
    what an incident begins with, in a line, by its id."""
    wanted = {
        str(c["flow_id"]) for cause in causes[:_CAUSES_TOLD] for c in cause.fullest().committers if c.get("flow_id")
    }
    connections = _connections(source, wanted)
    blocks: list[Block] = []
    for cause in causes[:_CAUSES_TOLD]:
        blocks.extend(_cause(cause, connections, judged, first_causes.get(cause.first.incident_id, "")))
    if len(causes) > _CAUSES_TOLD:
        blocks.append(
            Paragraph(f"and {count(len(causes) - _CAUSES_TOLD, 'more cause')}: wirewitness table findings CAPTURE...")
        )
    return Section("FINDINGS", tuple(blocks))


def cause_list(causes: Sequence[Cause]) -> list[Block]:
    """A table with one row per cause: how bad, what, its rule and how many that followed, who."""
    table = tuple(
        (cause.severity.upper(), cause_title(cause), _codes(cause), cause_who(cause))
        for cause in causes[:_CAUSES_LISTED]
    )
    header = ("SEVERITY", "FINDING", "RULE", "CLIENTS")
    blocks: list[Block] = [without_empty(Cells(header, table, wrapped=(1, 3)))]
    if len(causes) > _CAUSES_LISTED:
        blocks.append(Paragraph(f"and {count(len(causes) - _CAUSES_LISTED, 'more cause')}"))
    return blocks


def _codes(cause: Cause) -> str:
    """`KAF119 +2`: with findings of two more rules that follow from it."""
    own, *others = cause.by_code()
    return f"{own} +{len(others)}" if others else own


def cause_title(cause: Cause) -> str:
    """`Offset regression: payments-4 of group ledger, and 2 more partitions`."""
    more = len(cause.own) - 1
    if not more:
        return cause.first.title
    places = {place for finding in cause.own for place in finding.partitions()}
    of = "more partition" if len(places) == len(cause.own) else "more like it"
    return f"{cause.first.title}, and {count(more, of, of + 's' if of.endswith('n') else of)}"


def cause_where(cause: Cause) -> str:
    """Group and partitions of a cause, or the places that it names; empty where it names none."""
    group = cause.first.numbers.get("group")
    return ", ".join(part for part in (f"group {group}" if group is not None else "", _located(cause)) if part)


def cause_who(cause: Cause) -> str:
    """Its clients as `client id@address`."""
    return ", ".join(_client_names(cause))


def _located(cause: Cause) -> str:
    return partition_list(cause.partitions()) or _places(cause)


def _places(cause: Cause) -> str:
    """What the findings say under `where`: a topic, a collection, a server."""
    places = list(dict.fromkeys(str(f.numbers["where"]) for f in cause.own if f.numbers.get("where")))
    more = [f"{len(places) - _PLACES_SHOWN} more"] if len(places) > _PLACES_SHOWN else []
    return ", ".join(places[:_PLACES_SHOWN] + more)


def _client_names(cause: Cause) -> list[str]:
    """Clients of the fullest finding; those of all where findings of the cause are about different ones."""
    told = cause.fullest().who if cause.fullest().committers else [c for f in cause.own for c in f.who]
    names = (f"{c.get('client_id') or '(no client id)'}@{c.get('address') or '?'}" for c in told)
    distinct = list(dict.fromkeys(names))
    more = [f"{len(distinct) - _COMMITTERS_SHOWN} more"] if len(distinct) > _COMMITTERS_SHOWN else []
    return distinct[:_COMMITTERS_SHOWN] + more


def _cause(cause: Cause, connections: Mapping[str, Connection], judged: Judged | None, because: str) -> Iterable[Block]:
    yield Heading(f"{cause.severity.upper()}  {cause_title(cause)}", severity_tone(cause.severity), cause.first.code)
    if judged is not None:
        yield from grown_blocks(judged, cause.findings)
    yield from _told(cause.own)
    yield from _when(cause.own)
    if because:
        yield Paragraph(because, "because")
    yield from _followed(cause)
    who = cause.fullest()
    if who.committers:
        label = "committing client" if len(who.committers) == 1 else "committing clients"
        yield Paragraph(f"{label} of {_partition(who)}:" if who.topic_partition else f"{label}:")
        yield committer_table(who, connections, _COMMITTERS_SHOWN)
        if len(who.committers) > _COMMITTERS_SHOWN:
            yield Paragraph(f"and {len(who.committers) - _COMMITTERS_SHOWN} more in this finding's numbers")
    else:
        yield from _clients(cause)
    yield from _evidence(cause)
    yield Paragraph(cause.first.next_step, "next")
    ids = [found[0].finding_id for found in cause.by_code().values()]
    yield Paragraph(f"confidence {cause.confidence}{_provisional(cause.first)}, id {', '.join(ids)}", "about", "quiet")


def _when(found: Sequence[Finding]) -> Iterable[Block]:
    """From the first to the last packet that tells the cause."""
    first = min((finding.first_ns for finding in found if finding.first_ns is not None), default=None)
    last = max((finding.last_ns for finding in found if finding.last_ns is not None), default=None)
    if first is not None and last is not None:
        yield Paragraph(span_text(first, last), "when")


def _followed(cause: Cause) -> Iterable[Block]:
    """What followed from the cause, a short line for each rule."""
    followers = _followers(cause)
    if not followers:
        return
    yield Paragraph("and with it:", "followed")
    for found in followers[:_FOLLOWERS_SHOWN]:
        yield Paragraph(_short(found), found[0].code, nested=True)
    if len(followers) > _FOLLOWERS_SHOWN:
        yield Paragraph(f"and findings of {len(followers) - _FOLLOWERS_SHOWN} more rules", nested=True)


def followed_lines(cause: Cause) -> list[str]:
    """`KAF126: ...` for every rule whose findings followed from the cause."""
    return [f"{found[0].code}: {_short(found)}" for found in _followers(cause)[:_FOLLOWERS_SHOWN]]


def _followers(cause: Cause) -> list[list[Finding]]:
    return [found for code, found in cause.by_code().items() if code != cause.first.code]


def _short(found: Sequence[Finding]) -> str:
    """The title of the first one, or where its rule has none its first sentence without what the cause has told; and
    how many more there are and where."""
    first = found[0]
    text = first.title
    if text == default_title(first.name, first.numbers):
        text = first.sentence.removeprefix(f"Group {first.numbers.get('group')}: ")
        text = sentence_start(first_sentence(_MEMBER.sub("", text), _SHORT))
    if len(found) == 1:
        return text
    places = sorted({place for finding in found for place in finding.partitions()})
    where = f" on {partition_list(places)}" if len(places) > 1 else ""
    return f"{text} ({count(len(found), 'finding')} like it{where})"


def _told(found: Sequence[Finding]) -> Iterable[Block]:
    """The findings of one code: the worst one's sentence, and how many more there are and where."""
    worst = found[0]
    yield Paragraph(worst.sentence, worst.code)
    if len(found) == 1:
        return
    places = sorted({place for finding in found for place in finding.partitions()})
    where = f", on {count(len(places), 'partition')}: {partition_list(places)}" if places else ""
    yield Paragraph(f"the worst of {len(found)} findings like it{where}", "where" if places else "more")
    measured = _measures(found)
    if measured is not None:
        yield measured


def _partition(finding: Finding) -> str:
    """topic-partition, as Kafka's own tools write it."""
    located = finding.topic_partition
    return f"{located[0]}-{located[1]}" if located else "it"


def _provisional(finding: Finding) -> str:
    return ", provisional: later packets could overturn it" if finding.provisional else ""


def _clients(cause: Cause) -> Iterable[Block]:
    """The clients of all its findings side by side, with whatever the rule says of each."""
    several = len({f.numbers.get("where") for f in cause.own}) > 1
    clients = [
        {**client, "where": finding.numbers.get("where")} if several else client
        for finding in cause.own
        for client in finding.who
    ]
    shown = clients[:_COMMITTERS_SHOWN]
    if not shown:
        return
    names = list(dict.fromkeys(["address", "client_id", *(name for client in shown for name in client)]))
    table = tuple(dict.fromkeys(tuple(_value(name, client.get(name)) for name in names) for client in shown))
    numbers = [i for i, name in enumerate(names) if all(isinstance(c.get(name), int | float | None) for c in shown)]
    header = tuple(name.replace("_", " ").upper() for name in names)
    yield Paragraph("clients:" if len(clients) > 1 else "client:")
    yield without_empty(Cells(header, table, numbers=tuple(numbers)))
    if len(clients) > len(shown):
        yield Paragraph(f"and {len(clients) - len(shown)} more in the numbers of these findings", tone="quiet")


def _value(name: str, value: Any) -> str:
    return ms_text(value) if name.endswith("_ms") else plain(value)


def _measures(findings: Sequence[Finding]) -> Cells | None:
    """What was measured on the worst partitions; None when the findings share no numbers."""
    located = [f for f in findings if f.topic_partition is not None]
    if not located:
        return None
    names = [name for name in located[0].measures() if all(name in f.measures() for f in located)][:_MEASURES_SHOWN]
    if not names:
        return None
    shown = located[:_PARTITIONS_MEASURED]
    table = tuple((_partition(finding), *(_number(finding.measures()[name]) for name in names)) for finding in shown)
    title = f"WORST {len(shown)} OF {len(located)}" if len(shown) < len(located) else "PARTITION"
    return Cells((title, *(n.replace("_", " ").upper() for n in names)), table, numbers=tuple(range(1, len(names) + 1)))


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def _evidence(cause: Cause) -> Iterable[Block]:
    """Packets per file, with a filter to copy into Wireshark; those of the first finding when all are too many. Of a
    request log its lines."""
    every = cause.packets()
    for file, packets in every.items():
        shown = packets if len(packets) <= _PACKETS_SHOWN else cause.first_packets().get(file, packets)
        shown = spread(shown, _PACKETS_SHOWN)
        yield Paragraph(packets_named(len(shown), len(packets), file), "evidence")
        yield Copy("wireshark", display_filter(shown))
    for file, lines in cause.lines().items():
        yield Paragraph(lines_named(lines, file, _PACKETS_SHOWN), "evidence")


def lines_named(lines: list[int], file: str, most: int) -> str:
    """`24 of 39 lines of FILE: 3, 5-7, ...`: at most so many of them, from first to last."""
    shown = spread(lines, most)
    some = f"{len(shown):,} of " if len(shown) < len(lines) else ""
    return f"{some}{count(len(lines), 'line')} of {file}: {', '.join(ranges(shown))}"


def packets_named(shown: int, every: int, file: str) -> str:
    """`24 of 39 packets of FILE`: how many of them a filter names."""
    some = f"{shown:,} of " if shown < every else ""
    return f"{some}{count(every, 'packet')} of {file or 'the capture'}"


def spread(packets: list[int], limit: int) -> list[int]:
    """The first and the last ones, when there are more than `limit`."""
    half = limit // 2
    return packets if len(packets) <= limit else [*packets[:half], *packets[-half:]]


def _connections(source: Source, flow_ids: Iterable[str]) -> dict[str, Connection]:
    """Endpoints of these flows; ids are quoted as SQL strings."""
    listed = ", ".join("'" + flow_id.replace("'", "''") + "'" for flow_id in sorted(flow_ids))
    if not listed:
        return {}
    found = all_rows(
        source,
        "select flow_id, client_address, client_port, server_address, server_port from flows "
        f"where flow_id in ({listed})",
    )
    return {row["flow_id"]: Connection(client_endpoint_text(row), server_text(row)) for row in found}
