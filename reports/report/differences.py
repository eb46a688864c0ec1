"""The differences between two sources that are worth a line, in words. In: their tables; out: the largest first.

What chance makes as well, and what is too small to matter, has no line: two runs of one healthy system have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from wirewitness.analyser.base.bounded import beginning
from wirewitness.analyser.base.words import count
from wirewitness.reports.base.formats.values import ms_text
from wirewitness.reports.base.formats.words import rate
from wirewitness.reports.report.compare.differences import Between

Row = Mapping[str, Any]
# Least factors from which on a difference is told: rates go up and down by themselves, latencies less.
_TOLD = {"finding": 2.0, "error": 2.0, "latency": 1.5, "rate": 2.0, "client": 1.5, "version": 1.0, "group": 2.0,
         "topic": 2.0, "setting": 1.0, "server": 1.5, "shape": 1.5, "size": 2.0}  # fmt: skip
# Facts have no factor; they stand among the others as if they had this one, what was changed before what follows.
_FACTS = {
    "critical": 1000.0, "warning": 100.0, "version": 60.0, "setting": 60.0, "group": 55.0, "client": 55.0,
    "topic": 55.0, "shape": 55.0,
}  # fmt: skip
_WRONG_COMMITS = 58.0
_MOST_RATE = 50.0
_NAMES_SHOWN = 4
_LATENCIES = {"p50": "median latency", "p99": "p99 latency"}
_WRONG = {"refused": "commits refused", "foreign_commits": "commits not by the owner"}
# What a row of shapes tells besides latencies and rates.
_DOCUMENTS = {"returned": "documents in an answer", "sent": "documents in a request"}
_MOVED = {
    ("kafka", "written"): "records written", ("kafka", "read"): "records read",
    ("mqtt", "written"): "messages published", ("mqtt", "read"): "messages delivered",
}  # fmt: skip
_SIZES = {"p50": "median size", "p99": "p99 size"}
_LETTERS_SHOWN = 90


class Difference(NamedTuple):
    """One line. kind: finding, error, latency, rate, client, version, setting, group, topic, server, shape, size. what:
    words and names.

    a, b: how it stands on each side, in words. factor: how many times one side has what the other has, at least; facts
    have a fixed one. row: of the table that tells more.
    """

    kind: str
    what: str
    a: str
    b: str
    factor: float
    row: Row

    @property
    def measured(self) -> bool:
        """Whether the factor was: facts only stand at their place by one."""
        return (
            self.kind in ("error", "latency", "rate", "server", "size")
            or (self.kind == "shape" and bool(self.row["exchanges_a"] and self.row["exchanges_b"]))
            or (self.kind == "group" and self.row["wrong"] in _WRONG)
            or (self.kind == "topic" and self.row["there_a"] and self.row["there_b"])
        )


def differences(tables: Between) -> list[Difference]:
    """What somebody who compares wants to know, the largest and surest first."""
    narrower = [
        one for one in (*_servers(tables.servers), *_shapes(tables.shapes)) if one.factor >= _TOLD[one.kind]
    ]  # fmt: skip
    every = [
        *_findings(tables.findings), *_errors(tables.errors), *narrower, *_operations(tables.operations, narrower),
        *_clients(tables.clients), *_groups(tables.groups), *_topics(tables.topics), *_settings(tables.settings),
        *_sizes(tables.sizes), *_group_sizes(tables.group_sizes),
    ]  # fmt: skip
    told = [one for one in every if one.factor > 1 and one.factor >= _TOLD[one.kind]]
    return sorted(told, key=lambda one: -_rank(one))


def _rank(one: Difference) -> float:
    """Commits that are refused, or not the owner's, are a fault of the group, however many there are."""
    return max(one.factor, _WRONG_COMMITS) if one.kind == "group" and one.measured else one.factor


def _findings(made: Iterable[Row]) -> Iterator[Difference]:
    """Rules that found something on one side only, or far more; what is no trouble is no difference."""
    for row in made:
        if row["severity"] in _FACTS:
            factor = min(row["differs"], _FACTS[row["severity"]])
            a, b = (_found(row[f"findings_{side}"]) for side in "ab")
            yield Difference("finding", f"{row['code']} {row['name']}", a, b, factor, row)


def _found(count: int) -> str:
    return f"{count:,} {'finding' if count == 1 else 'findings'}" if count else "no finding"


def _errors(made: Iterable[Row]) -> Iterator[Difference]:
    for row in made:
        a, b = (f"{row[f'exchanges_{side}']:,} of {row[f'of_{side}']:,}" for side in "ab")
        yield Difference("error", f"{row['operation']} answered {row['error']}", a, b, row["differs"], row)


def _operations(made: Iterable[Row], narrower: Iterable[Difference]) -> Iterator[Difference]:
    """Of each operation one line: its other numbers follow from the one that differs most, as a rule.

    narrower: lines about servers and shapes; of what one of them tells, the operation says nothing more.
    """
    told = {(one.row["protocol"], one.row["operation"]) for one in narrower}
    for row in made:
        if (row["protocol"], row["operation"]) in told:
            continue
        latency = _most(row, _LATENCIES)
        if row[latency] >= _TOLD["latency"]:
            a, b = (f"{ms_text(row[f'{latency}_ms_{side}'])} ms" for side in "ab")
            yield Difference("latency", f"{row['operation']}: {_LATENCIES[latency]}", a, b, row[latency], row)
        else:
            a, b = (_rate(row[f"per_second_{side}"], row[f"exchanges_{side}"]) for side in "ab")
            yield Difference("rate", f"{row['operation']} per second", a, b, min(row["rate"], _MOST_RATE), row)


def _servers(made: Sequence[Row]) -> Iterator[Difference]:
    """Servers that answer otherwise than they did, while others that answer the same do as before."""
    of: dict[tuple[Any, Any], list[Row]] = {}
    for row in made:
        of.setdefault((row["protocol"], row["operation"]), []).append(row)
    for rows in of.values():
        for measure in (*_LATENCIES, "wrong"):
            differ = [row for row in rows if row[measure] >= _TOLD["server"]]
            if len(differ) < len(rows):
                yield from (_server(row, measure) for row in differ if measure == _most(row, (*_LATENCIES, "wrong")))


def _most(row: Row, names: Iterable[str]) -> str:
    """Which of these factors is the largest."""
    return max(names, key=lambda name: float(row[name]))


def _server(row: Row, measure: str) -> Difference:
    where = f"{row['operation']} at {row['server']}"
    if measure == "wrong":
        a, b = (f"{row[f'errors_{side}']:,} of {row[f'exchanges_{side}']:,}" for side in "ab")
        return Difference("server", f"{where}: answered with an error", a, b, row[measure], row)
    a, b = (f"{ms_text(row[f'{measure}_ms_{side}'])} ms" for side in "ab")
    return Difference("server", f"{where}: {_LATENCIES[measure]}", a, b, row[measure], row)


def _shapes(made: Sequence[Row]) -> Iterator[Difference]:
    """Shapes that only one side has share a line; of each other one a line, as of operations."""
    sides = [
        {**row, "named": _shortened(row["shape"])} for row in made
        if not (row["exchanges_a"] and row["exchanges_b"]) and row["rate"] >= _TOLD["client"]
    ]  # fmt: skip
    yield from _one_sided("shape", sides, "exchanges", "named", ("query shape", "query shapes"))
    for row in made:
        if not (row["exchanges_a"] and row["exchanges_b"]):
            continue
        latency, documents = _most(row, _LATENCIES), _most(row, _DOCUMENTS)
        name = _shortened(row["shape"])
        if row[documents] >= _TOLD["size"]:
            a, b = (f"{row[f'p50_{documents}_{side}']:,.0f}" for side in "ab")
            yield Difference("shape", f"{name}: {_DOCUMENTS[documents]}, median", a, b, row[documents], row)
        if row[latency] >= _TOLD["latency"]:
            a, b = (f"{ms_text(row[f'{latency}_ms_{side}'])} ms" for side in "ab")
            yield Difference("shape", f"{name}: {_LATENCIES[latency]}", a, b, row[latency], row)
        elif row["rate"] >= _TOLD["rate"]:
            a, b = (_rate(row[f"per_second_{side}"], row[f"exchanges_{side}"]) for side in "ab")
            yield Difference("shape", f"{name} per second", a, b, min(row["rate"], _MOST_RATE), row)


def _sizes(made: Iterable[Row]) -> Iterator[Difference]:
    nouns = {"request": "{} requests", "response": "{} responses", "record": "Records of topic {}",
             "payload": "Payloads of topic {}"}  # fmt: skip
    for row in made:
        which = _most(row, _SIZES)
        if row[which] >= _TOLD["size"]:
            a, b = (f"{row[f'{which}_bytes_{side}']:,.0f} bytes" for side in "ab")
            what = f"{nouns[row['what']].format(row['name'])}: {_SIZES[which]}"
            yield Difference("size", what, a, b, row[which], row)


def _shortened(text: str) -> str:
    return beginning(text, _LETTERS_SHOWN)


def _rate(per_second: float, exchanges: int) -> str:
    return rate(per_second) if exchanges else "none"


def _clients(made: Sequence[Row]) -> Iterator[Difference]:
    """Each client that speaks another version; those that came or went in one line, for one cause has many of them."""
    for row in made:
        if row["differs"] == inf:
            yield Difference("version", f"Versions of {row['client']}", row["before"], row["after"],
                             _FACTS["version"], row)  # fmt: skip
    alone = [row for row in made if _TOLD["client"] <= row["differs"] < inf]
    yield from _one_sided("client", alone, "exchanges", "client", ("client", "clients"))


def _groups(made: Sequence[Row]) -> Iterator[Difference]:
    for row in made:
        if row["wrong"] in _WRONG:
            counts = [(row[f"{row['wrong']}_{side}"], row[f"commits_{side}"] + row[f"refused_{side}"]) for side in "ab"]
            a, b = (f"{wrong:,} of {every:,}" for wrong, every in counts)
            yield Difference("group", f"Group {row['group_id']}: {_WRONG[row['wrong']]}", a, b, row["differs"], row)
    alone = [row for row in made if row["wrong"] == "there"]
    yield from _one_sided("group", alone, "there", "group_id", ("group", "groups"))


def _topics(made: Sequence[Row]) -> Iterator[Difference]:
    """Those that only one side has in one line: for one cause there are many of them."""
    alone = [row for row in made if row["move"] and not (row["there_a"] and row["there_b"])]
    yield from _one_sided("topic", alone, "there", "topic", ("topic", "topics"))
    for row in made:
        if (move := row["move"]) and row["there_a"] and row["there_b"]:
            a, b = (_rate(row[f"{move}_per_second_{side}"], row[f"{move}_{side}"]) for side in "ab")
            what = f"Topic {row['topic']}: {_MOVED[row['protocol'], move]} per second"
            yield Difference("topic", what, a, b, min(row["differs"], _MOST_RATE), row)


def _settings(made: Iterable[Row]) -> Iterator[Difference]:
    for row in made:
        of = "" if row["of"] == "client" else f"{row['of']} "
        what = f"{row['setting']} of {of}{_names(map(_shortened, row['names']))}"
        yield Difference("setting", what, row["before"], row["after"], _FACTS["setting"], row)


def _group_sizes(made: Iterable[Row]) -> Iterator[Difference]:
    for row in made:
        a, b = (count(row[side], "member") for side in ("before", "after"))
        what = f"Group {row['group_id']}: members for most of the time"
        yield Difference("group", what, a, b, _FACTS["group"], {**row, "wrong": "members"})


def _one_sided(kind: str, made: Sequence[Row], there: str, name: str, nouns: tuple[str, str]) -> Iterator[Difference]:
    """A line for those that only one side has, one for those of the other. there: column, empty where one is not."""
    for side, other in (("a", "b"), ("b", "a")):
        alone = [row for row in made if row[f"{there}_{side}"] and not row[f"{there}_{other}"]]
        if alone:
            words = {side: f"{len(alone):,} {nouns[len(alone) > 1]}", other: "none of them"}
            yield Difference(kind, f"{nouns[len(alone) > 1].capitalize()} {_names(row[name] for row in alone)}",
                             words["a"], words["b"], _FACTS[kind], alone[0])  # fmt: skip


def _names(names: Iterable[Any]) -> str:
    listed = [str(name or "(no name)") for name in names]
    more = f" and {len(listed) - _NAMES_SHOWN:,} more" if len(listed) > _NAMES_SHOWN else ""
    return ", ".join(listed[:_NAMES_SHOWN]) + more
