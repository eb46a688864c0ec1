"""The commands of `wirewitness` by name: where each is, and what the list of commands says of it.

In: a name on the command line. Out: the click command; the module of a command is imported when it is run, or asked for
its own help, and no other one.
"""

from __future__ import annotations

from importlib import import_module

import click

# Name -> (module of app.cli that has the command under its name, line in the list of commands).
COMMANDS: dict[str, tuple[str, str]] = {
    "analyse": ("analyse", "Explain what happened: findings, capture quality, groups, latencies."),
    "findings": ("findings", "List the findings, without acknowledged ones."),
    "expect": ("expect", "Check whether captures keep to a contract: rules of your own, or ready-made ones."),
    "why": ("why", "Show why a partition, a finding, an exchange or a message is as it is: its causes, backwards."),
    "show": ("show", "Show one message: fields with byte spans, and hex."),
    "extract": ("extract", "Write the packets behind a finding, flow or message to a capture."),
    "table": ("table", "Show the rows of table NAME."),
    "query": ("query", "Answer one SQL SELECT over all tables."),
    "tables": ("tables", "List the tables; with NAME the columns of one."),
    "groups": ("kafka_views", "Kafka groups: state, members, committed offsets, lag, who committed last."),
    "topics": ("kafka_views", "Kafka topics and partitions: what moved, who wrote and read."),
    "brokers": ("kafka_views", "Kafka brokers, endpoints and changes of leaders."),
    "clients": ("kafka_views", "Clients of all protocols: library, requests, errors, latency."),
    "records": ("records", "Show Kafka records, as a console consumer does."),
    "compare": ("compare", "Say what differs between two captures, or two times of one."),
    "differ": ("differ", "Say what slow or failed exchanges have in common that others have not."),
    "shapes": ("shapes", "Group MongoDB commands by query shape."),
    "detectors": ("detectors", "List the rules behind findings; with CODE the page of one."),
    "guide": ("guide", "How to capture: tcpdump, Kubernetes, Docker, Kafka's request log, keys of TLS."),
    "sample": ("sample", "List the sample captures; with NAME the path of one."),
    "dashboard": ("dashboard", "Look at captures in a browser."),
    "live": ("live", "Decode while capturing: rates, groups, findings as they appear."),
    "crosscheck": ("crosscheck", "Compare every message with what Wireshark's tshark says."),
    "mcp": ("mcp", "Serve the analysis to an assistant (Model Context Protocol)."),
    "archive": ("archive", "Take captures into a DATASET, run after run, on Spark."),
    "otel": ("otel", "Send exchanges as OpenTelemetry spans, or write them as OTLP JSON."),
}


def command(name: str) -> click.Command:
    """The command of that name, which COMMANDS has."""
    found: click.Command = getattr(import_module(f"wirewitness.app.cli.{COMMANDS[name][0]}"), name)
    return found


class LaterGroup(click.Group):
    """A click group whose own `commands` know no more than their names and lines, until one of them is run."""

    def __init__(self, *given: object, **settings: object) -> None:
        super().__init__(*given, **settings)  # type: ignore[arg-type]
        for name, (_, line) in COMMANDS.items():
            self.add_command(click.Command(name, short_help=line))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the command itself."""
        name, found, rest = super().resolve_command(ctx, args)
        if name is None:
            return name, found, rest
        own = command(name)
        if not ctx.resilient_parsing:
            refuse_repeated(own, click.Context(own, info_name=name, parent=ctx, **own.context_settings), rest)
        return name, own, rest


def refuse_repeated(own: click.Command, ctx: click.Context, words: list[str]) -> None:
    """A usage error for an option that takes one value and is given several: all but the last would be passed over.

    ctx: of the command.
    """
    _, _, order = own.make_parser(ctx).parse_args(list(words))
    given: set[str] = set()
    for option in order:
        if isinstance(option, click.Option) and not (option.multiple or option.is_flag or option.count):
            if option.opts[0] in given:
                raise click.UsageError(f"{option.opts[0]} takes one value, and is given more than once", ctx)
            given.add(option.opts[0])
