"""Options that commands which read captures share, checked here. In: text of the command line; out: `ReadOptions`."""

from __future__ import annotations

import os
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import click

from wirewitness.app.shared.failure import CallerError
from wirewitness.app.shared.local_files import check_is_local
from wirewitness.app.shared.names import checked_name
from wirewitness.app.shared.times import unix_ns

if TYPE_CHECKING:
    from wirewitness.analyser.base.options import ReadOptions

Command = TypeVar("Command", bound=Callable[..., Any])


class TimeType(click.ParamType[int]):
    """ISO 8601 to Unix ns."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Unix ns, or a usage error that shows the format."""
        if isinstance(value, int):
            return value
        try:
            return unix_ns(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


topic_id_option = click.option(
    "--topic-id", "topic_ids", multiple=True, metavar="NAME=ID",
    help="The name of a Kafka topic that the capture knows by its id only. Repeatable.",
)  # fmt: skip


keylog_option = click.option(
    "--keylog", "keylogs", multiple=True, metavar="FILE",
    help="Secrets of TLS, as programs log them (SSLKEYLOGFILE), to decrypt connections. Repeatable.",
)  # fmt: skip


hosts_option = click.option(
    "--hosts", "hosts", multiple=True, metavar="FILE",
    help="Who has which address: /etc/hosts, CSV or TOML with times, kubectl get pods -A -o json, docker inspect or "
         "docker network inspect. Repeatable.",
)  # fmt: skip


class ZoneType(click.ParamType[int]):
    """A zone such as +02:00 to ns ahead of UTC."""

    name = "zone"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """ns, or a usage error that shows the format."""
        if isinstance(value, int):
            return value
        from wirewitness.analyser.capture.log_times import zone_ns_of

        try:
            return zone_ns_of(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


log_zone_option = click.option(
    "--log-zone", "log_zone_ns", type=ZoneType(), metavar="+HH:MM",
    help="Zone of the times in a request log that name none (UTC without this).",
)  # fmt: skip


def reading_options(command: Command) -> Command:
    """Adds the CAPTURE arguments' companions; the command takes them as keyword arguments (`**reading`)."""
    for option in reversed(_READING_OPTIONS):
        command = option(command)
    return command


_READING_OPTIONS = (
    click.option("--decode-as", multiple=True, metavar="PORT=PROTOCOL",
                 help="Read connections to this server port as PROTOCOL. Repeatable."),
    topic_id_option,
    keylog_option,
    hosts_option,
    log_zone_option,
    click.option("--protocol", multiple=True, metavar="NAME", help="Show only this protocol. Repeatable."),
    click.option("--enable", multiple=True, metavar="NAME", help="Switch on an optional dissector. Repeatable."),
    click.option("--from", "from_ns", type=TimeType(),
                 help="Rows from this time on: ISO 8601, up to 9 digits of fraction, UTC unless it names a zone."),
    click.option("--to", "to_ns", type=TimeType(), help="Rows before this time. All packets are read in any case."),
    click.option("--processes", type=click.IntRange(1, 64), default=1, show_default=True, metavar="N",
                 help="Share the connections among N processes."),
    click.option("--quiet", is_flag=True, help="No progress and no notes; errors still show."),
    click.option("--debug", is_flag=True, help="Show the trace when wirewitness itself fails."),
)  # fmt: skip


def locating_options(command: Command) -> Command:
    """Options of commands that look ids up; they take them as `**locating`."""
    for option in reversed((*(o for o in _READING_OPTIONS if _name(o) in _LOCATING), _NO_INDEX)):
        command = option(command)
    return command


_NO_INDEX = click.option("--no-index", is_flag=True, help="Read everything again and keep nothing in the cache folder.")
_LOCATING = ("decode_as", "topic_ids", "keylogs", "hosts", "log_zone_ns", "enable", "processes", "quiet", "debug")


def _name(option: Callable[..., Any]) -> str:
    """The keyword of an option, learned from what it does to a command."""
    parameters: list[click.Option] = option(lambda: None).__click_params__
    return str(parameters[0].name)


def _file_or_none(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    return None if value == "-" else value


output_option = click.option(
    "--output", "-o", metavar="FILE", callback=_file_or_none, help="Write to FILE instead of standard output (-)."
)


def read_options(
    decode_as: tuple[str, ...],
    protocol: tuple[str, ...],
    enable: tuple[str, ...],
    from_ns: int | None,
    to_ns: int | None,
    processes: int = 1,
    payload: bool = False,
    payload_columns: tuple[str, ...] = (),
    topic_ids: tuple[str, ...] = (),
    keylogs: tuple[str, ...] = (),
    hosts: tuple[str, ...] = (),
    log_zone_ns: int | None = None,
) -> ReadOptions:
    """The checked value. CallerError for an unknown name, a bad port, a file that is not there, or times the wrong way
    round."""
    from wirewitness.analyser.base.options import ReadOptions

    if from_ns is not None and to_ns is not None and from_ns > to_ns:
        raise click.UsageError("--from is later than --to: no row can be between them")
    enabled = tuple(checked_name(name, optional_protocols(), "optional dissector") for name in enable)
    return ReadOptions(
        decode_as=dict(_port_and_protocol(text, enabled) for text in decode_as),
        protocols=tuple(_checked_protocol(name, enabled) for name in protocol),
        enable=enabled,
        from_ns=from_ns,
        to_ns=to_ns,
        processes=processes,
        payload=payload,
        payload_columns=payload_columns,
        topic_ids=_names_of_ids(topic_ids),
        keylogs=tuple(_checked_file("--keylog", path) for path in keylogs),
        hosts=tuple(_checked_file("--hosts", path) for path in hosts),
        log_zone_ns=log_zone_ns,
    )


def known_protocols() -> Collection[str]:
    """Names of all protocols that have a dissector which is on by itself."""
    from wirewitness.dissectors.registry import PROTOCOLS

    return tuple(PROTOCOLS)


def optional_protocols() -> Collection[str]:
    """Names of the dissectors that are off unless asked for."""
    from wirewitness.dissectors.registry import OPTIONAL

    return tuple(OPTIONAL)


def _checked_protocol(name: str, enabled: tuple[str, ...]) -> str:
    """The known name. CallerError for another one; of an optional dissector it says how to switch it on."""
    off = {known.lower(): known for known in optional_protocols() if known not in enabled}.get(name.lower())
    if off is not None:
        raise CallerError(f"the dissector {off} is optional and off: switch it on with --enable {off}")
    return checked_name(name, (*known_protocols(), *enabled), "protocol")


def _checked_file(option: str, path: str) -> str:
    """The absolute path of a file that can be read: other processes may look for it from elsewhere."""
    check_is_local(path, option)
    if not os.path.isfile(path):
        raise CallerError(f"{option} {path}: {'this is no file' if os.path.exists(path) else 'no such file'}")
    if not os.access(path, os.R_OK):
        raise CallerError(f"{option} {path}: it cannot be read")
    return os.path.abspath(path)


def _port_and_protocol(text: str, enabled: tuple[str, ...]) -> tuple[int, str]:
    port, equals, protocol = text.partition("=")
    if not equals or not port.strip().isdecimal() or not 1 <= int(port) <= 65535:
        raise click.UsageError(
            f"--decode-as {text}: write PORT=PROTOCOL, such as {_an_example()}; ports are 1 to 65535"
        )
    return int(port), _checked_protocol(protocol.strip(), enabled)


def _names_of_ids(given: tuple[str, ...]) -> dict[str, str]:
    """Topic id as Kafka's tools print it -> name. A usage error for another form, and for an id with two names."""
    found: dict[str, str] = {}
    for text in given:
        name, _, told = text.rpartition("=")
        topic_id = _kafka_id(told.strip())
        if not name.strip() or topic_id is None:
            raise click.UsageError(f"--topic-id {text}: write NAME=ID, such as payments=2OTvU9nrQVuRfWiAtmHLzg")
        if found.setdefault(topic_id, name.strip()) != name.strip():
            raise click.UsageError(f"--topic-id: {topic_id} cannot be {found[topic_id]} and {name.strip()} at once")
    return found


def _kafka_id(text: str) -> str | None:
    """The id in Kafka's own form (base64), also of one in the usual form of a UUID; None for anything else."""
    if re.fullmatch(r"[A-Za-z0-9_-]{21}[AQgw]", text):
        return text
    if re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text):
        return urlsafe_b64encode(UUID(text).bytes).decode().rstrip("=")
    return None


def _an_example() -> str:
    from wirewitness.dissectors.registry import PROTOCOLS

    first = next(iter(PROTOCOLS.values()))
    return f"{first.ports[-1]}={first.name}"
