"""`wirewitness groups`, `topics`, `brokers` (Kafka's) and `clients` (of all protocols). In: captures; out: rows.

Each command has views (reports/protocols/kafka/questions/views.py): one without an option, the others by a flag of
their name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from wirewitness.app.cli.output import check_output
from wirewitness.app.cli.results import write_blocks, write_query
from wirewitness.app.cli.rows import checked_form, format_option, limit_option, payload_option
from wirewitness.app.shared.failure import Status
from wirewitness.app.shared.options import TimeType, output_option, reading_options
from wirewitness.app.shared.reading import open_analysis, status_of

if TYPE_CHECKING:
    from wirewitness.analyser.analysis.analysis import Analysis
    from wirewitness.reports.protocols.kafka.questions.view import KafkaView

# Few enough bins for a terminal; programs choose their own with --step.
_BINS = 20
_OVER_TIME = "over-time"
_STATE = "state"


class _Command(NamedTuple):
    """One command. option: selects rows by `column`. flags: what each view shows. nothing: said without
    rows, of the view without a flag and of the others.

    headed: flags of views in which a line of the view `state` stands over the rows of each group. of_member: the flag
    of a view that may be given a member.
    """

    name: str
    noun: str
    option: str
    column: str
    flags: Mapping[str, str]
    help: str
    nothing: tuple[str, str]
    headed: tuple[str, ...] = ()
    of_member: str = ""


class _Wanted(NamedTuple):
    """What the options of a command say: the view's flag and its member, names of `option`, the last moment, the width
    of bins."""

    flag: str
    member: str
    names: tuple[str, ...]
    at_ns: int | None
    step_s: float | None
    form: str
    limit: int | None
    output: str | None


_GROUPS = _Command(
    "groups", "group", "--group", "group_id",
    {
        "state": "How each group is: state, protocol, assignor, generation, coordinator.",
        "changes": "When the state, the generation or the number of members changed.",
        "members": "Members instead of partitions: client, address, generations, what each has.",
        "rebalances": "What set each rebalance off, whom it waited for, what moved.",
        "start-up": "The way of each consumer to its first commit, and where it stopped.",
        "restart": "What would be read twice, or never, if all consumers of a group were killed and started now, or "
                   "the one named: by its member id, client id or static name.",
        "share-offsets": "Share groups: where each partition starts, and its lag as a broker reported it.",
        _OVER_TIME: "Offsets, lag and committing clients by time.",
    },
    """Show consumer groups as kafka-consumer-groups --describe does, and who committed last.

    A row is a partition of a group, committed, assigned or read: the committed offset in the broker after the last
    accepted commit, the end of the log as responses reported it, and the consumer that has the partition: who was
    assigned it, or who reads it where no assignment was seen; - where nothing is known, or nobody has it. BY: how many
    clients (address, client id, member id) committed it. TIME-LAG: since the log end passed the committed offset, at
    least. LOG-END-AGE: since the log end was reported, up to --at or the end of the capture. COMMITTED-BY is shown of
    groups in which it is another one than the consumer. Narrow terminals show fewer columns, the same of all groups;
    csv and jsonl have all of them (time_lag_ms, log_end_age_ms). Above is the group's state, as with --state.

    With --state a row is a group, as kafka-consumer-groups --describe --state: its state as the broker names it,
    classic, consumer (KIP-848), share or streams, the protocol of its members (consumer, connect, ...), assignor,
    generation or epoch, members, coordinator. With --changes a row is a state that a group was in, and how long. What
    no packet shows is empty in csv and null in jsonl.

    With --members a row is a member, as --describe --members --verbose, with the topics it wants to read, what it has
    and how its membership ended.

    With --rebalances a row is a rebalance: what set it off, the member that all waited for and how long, how many
    partitions moved, and the longest pause of a member from its JoinGroup to its part. csv and jsonl have the
    partitions (moves) and the pause of each member (pauses).

    With --start-up a row is a consumer that began in the capture: the requests on its way to the first commit with the
    ms until each response, and what failed where it stopped.

    With --restart a row is a partition: where its consumer would go on if it were killed and started (at --at, or at
    the end of the capture), and what lies between that and what it has read: AGAIN comes twice, SKIPPED never. Without
    a stored offset, or where the log begins after it by now, auto.offset.reset decides, and each of its values has a
    row; `none` stops the consumer. Counts are offsets; csv and jsonl have the records that the capture has in them, and
    with --payload the first and the last key.

    With --share-offsets a row is a partition of a share group, as kafka-share-groups --describe: where it starts, by
    the newest response to anybody, brokers among themselves included, and the lag that a DescribeShareGroupOffsets
    reported (at ts_lag in csv and jsonl); - where none did since it starts there.

    \b
    Examples:
      wirewitness groups incident.pcapng
      wirewitness groups incident.pcapng --group payments --at 2026-03-01T03:12:00
      wirewitness groups incident.pcapng --over-time --step 10 --format csv --output lag.csv
      wirewitness groups incident.pcapng --members
      wirewitness groups incident.pcapng --state --at 2026-03-01T03:12:00 --format csv
      wirewitness groups incident.pcapng --changes --group payments
      wirewitness groups incident.pcapng --rebalances --group payments
      wirewitness groups incident.pcapng --rebalances --format jsonl --output rebalances.jsonl
      wirewitness groups incident.pcapng --start-up
      wirewitness groups incident.pcapng --restart --at 2026-03-01T03:12:00
      wirewitness groups incident.pcapng --restart ledger-a --payload
      wirewitness groups incident.pcapng --share-offsets --at 2026-03-01T03:12:00""",
    ("No consumer group was seen.", "No consumer group was seen to do that."),
    ("", "members", "restart"),
    "restart",
)  # fmt: skip
_TOPICS = _Command(
    "topics", "topic", "--topic", "topic",
    {
        "partitions": "Partitions: leader, replicas, log start and end.",
        "latency": "How long records took from the producer to each group.",
        _OVER_TIME: "Records and bytes written and read, by time.",
    },
    """Show topics: partitions, records and bytes written and read by clients, writers, readers and groups.

    With --latency a row is a reader of a topic, a group or a client without one: the time from the request that wrote a
    batch to the response that brought it, and how many records it had not read when the capture ended.

    \b
    Examples:
      wirewitness topics incident.pcapng
      wirewitness topics incident.pcapng --partitions --topic payments
      wirewitness topics incident.pcapng --latency --topic payments
      wirewitness topics incident.pcapng --over-time --step 1 --format csv""",
    ("No topic was seen.", "No topic was seen."),
)  # fmt: skip
_BROKERS = _Command(
    "brokers", "broker", "--server", "server_address",
    {
        "endpoints": "What clients connected to, advertised or not; --server goes with it.",
        "changes": "Leaders and replicas in sync that changed.",
        _OVER_TIME: "Requests to each endpoint, errors and latency, by time.",
    },
    """Show brokers as advertised to clients; with --endpoints those that clients connected to.

    Latencies leave out long polls, for data or members (exchanges.awaitable).

    \b
    Examples:
      wirewitness brokers incident.pcapng
      wirewitness brokers incident.pcapng --changes
      wirewitness brokers incident.pcapng --over-time --server 10.0.0.5""",
    ("No broker was seen.", "Nothing of the kind was seen."),
)  # fmt: skip
_CLIENTS = _Command(
    "clients", "client", "--client", "client_id",
    {
        "versions": "Versions of each API in use.",
        "transactions": "Transactions: whose, how long open, how they ended.",
        _OVER_TIME: "Requests, errors and latency of each client, by time.",
    },
    """Show clients of all protocols: library and version, connections, requests, errors, latency in ms.

    CLIENT ID is the application's name in MongoDB. MQTT names no library; VERSION is that of the protocol there.

    ERRORS are responses with an error. NO RESPONSE, here and in reports, are requests that got none although one was
    due: not those that a client leaves behind when it goes, that the capture ends within 30 s of, or whose connection
    lacks bytes or a side. ERRORS of clients in a report counts both.

    Latencies leave out long polls, for data or members (exchanges.awaitable).

    \b
    Examples:
      wirewitness clients incident.pcapng
      wirewitness clients incident.pcapng --versions
      wirewitness clients incident.pcapng --transactions --client payouts-1
      wirewitness clients incident.pcapng --over-time --client billing-a""",
    ("No client was seen.", "No client was seen to do that."),
)  # fmt: skip


def _command(made: _Command) -> click.Command:
    """A click command with a flag for each view."""

    def run(*, captures: tuple[str, ...], **given: Any) -> Status:
        chosen = {name: given.pop(_parameter(name)) for name in made.flags}
        flag = _one_flag([name for name, value in chosen.items() if value not in (False, None)])
        member = chosen.get(made.of_member) or ""
        if member and (not captures or os.path.exists(member)):  # `--restart CAPTURE`
            captures, member = (member, *captures), ""
        if not captures:
            raise click.UsageError("Missing argument 'CAPTURE...'.")
        given["form"] = checked_form(given["form"], given["output"], raw=given.pop("raw"))
        others = (given.pop(name) for name in ("names", "at", "step", "form", "limit", "output"))
        wanted = _Wanted(flag, member, *others)
        return _run(made, captures, wanted, given)

    run.__doc__ = made.help
    for option in reversed(_options(made)):
        run = option(run)
    return click.command(made.name)(run)


def _parameter(flag: str) -> str:
    return f"view_{flag.replace('-', '_')}"


def _one_flag(given: Sequence[str]) -> str:
    """The flag, empty for none. A usage error for two."""
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(f'--{name}' for name in given)} are two views: choose one")
    return given[0] if given else ""


def _options(made: _Command) -> list[Callable[..., Any]]:
    flags = [
        click.option(f"--{name}", _parameter(name), is_flag=False, flag_value="", metavar="[MEMBER]", help=text)
        if name == made.of_member
        else click.option(f"--{name}", _parameter(name), is_flag=True, help=text)
        for name, text in made.flags.items()
    ]
    return [
        click.argument("captures", nargs=-1, required=not made.of_member, metavar="CAPTURE..."),
        click.option(made.option, "names", multiple=True, metavar="NAME", help=f"Only this {made.noun}. Repeatable."),
        *flags,
        click.option("--at", type=TimeType(), help="As it was at this time (ISO 8601): later packets do not count."),
        click.option("--step", type=click.FloatRange(min=0.001, max=1e7), metavar="SECONDS",
                     help=f"Width of the bins of --over-time; without it about {_BINS} bins."),
        format_option,
        limit_option,
        output_option,
        *([payload_option] if made.of_member else []),
        reading_options,
    ]  # fmt: skip


def _run(made: _Command, captures: tuple[str, ...], wanted: _Wanted, reading: dict[str, Any]) -> Status:
    check_output(wanted.output, captures)
    from wirewitness.analyser.tables.queries import literal
    from wirewitness.reports.protocols.kafka.questions.group_restart import OF_MEMBER
    from wirewitness.reports.protocols.kafka.questions.view import view_sql
    from wirewitness.reports.protocols.kafka.questions.views import VIEWS

    view = VIEWS[made.name][wanted.flag]
    _check(made, view, wanted, reading)
    if wanted.at_ns is not None:
        reading["to_ns"] = wanted.at_ns + 1
    over_time = wanted.flag == _OVER_TIME
    head = VIEWS[made.name].get(_STATE) if wanted.form == "table" and wanted.flag in made.headed else None
    tables = {*view.tables, *(["exchanges"] if over_time else []), *(head.tables if head else ())}
    with open_analysis(captures, sorted(tables), reading) as analysis:
        times = partial(view_sql, until_ns=wanted.at_ns, now_ns=analysis.options.to_ns)
        also = OF_MEMBER.format(literal(wanted.member)) if wanted.member else "true"
        chosen = partial(times, column=made.column, names=wanted.names, also=also, limit=wanted.limit)
        sql = chosen(view, width_ns=_width_ns(analysis, wanted.step_s) if over_time else 1)
        if wanted.form == "table":
            from wirewitness.reports.base.questions.source import rows
            from wirewitness.reports.protocols.kafka.sections.view import view_blocks

            found = rows(analysis, sql)
            stand = rows(analysis, times(head, column=made.column, names=wanted.names)) if head else []
            if wanted.member:  # of other groups there is nothing to tell
                groups_of_it = {(row["cluster_id"], row["group_id"]) for row in found}
                stand = [row for row in stand if (row["cluster_id"], row["group_id"]) in groups_of_it]
            write_blocks(view_blocks(found, view, _nothing(made, wanted), stand), wanted.output)
        else:
            write_query(analysis, sql, wanted.form, wanted.output)
        return status_of(analysis)


def _check(made: _Command, view: KafkaView, wanted: _Wanted, reading: Mapping[str, Any]) -> None:
    """A usage error for options that do not go together."""
    if wanted.step_s is not None and wanted.flag != _OVER_TIME:
        raise click.UsageError("--step goes with --over-time")
    if wanted.names and not _has_column(view, made.column):
        raise click.UsageError(f"{made.option} goes with {', '.join(_flags_with_names(made))}")
    if wanted.at_ns is not None and reading["to_ns"] is not None:
        raise click.UsageError("--at and --to cannot be given together: --at is the last moment to look at")


def _has_column(view: KafkaView, column: str) -> bool:
    return column in {*(shown.name for shown in view.shown), *view.heading[1]}


def _flags_with_names(made: _Command) -> list[str]:
    """Flags of the views whose rows `option` selects."""
    from wirewitness.reports.protocols.kafka.questions.views import VIEWS

    return [f"--{flag}" for flag, view in VIEWS[made.name].items() if flag and _has_column(view, made.column)]


def _width_ns(analysis: Analysis, step_s: float | None) -> int:
    from wirewitness.reports.base.questions.source import rows
    from wirewitness.reports.base.questions.timelines import bin_width_ns

    if step_s is not None:
        return round(step_s * 1e9)
    found = rows(analysis, "select epoch_ns(min(ts)) as first_ns, epoch_ns(max(ts)) as last_ns from exchanges")[0]
    return 1 if found["first_ns"] is None else bin_width_ns(found["first_ns"], found["last_ns"], _BINS)


def _nothing(made: _Command, wanted: _Wanted) -> str:
    """What is said where there are no rows."""
    from wirewitness.reports.base.formats.printable import visible

    if wanted.member:
        when = "then" if wanted.at_ns is not None else "when the capture ends (--at TIME looks at an earlier moment)"
        return f"{visible(wanted.member)} has no partition {when}, or was not seen."
    if wanted.names:
        return f"Nothing was seen of {made.noun} {visible(', '.join(wanted.names))}."
    return made.nothing[bool(wanted.flag)]


groups, topics, brokers, clients = (_command(made) for made in (_GROUPS, _TOPICS, _BROKERS, _CLIENTS))
