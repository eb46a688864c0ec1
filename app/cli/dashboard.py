"""`wirewitness dashboard`: captures in a browser. In: captures; out: a web server until Ctrl-C."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import click

from wirewitness.app.shared.failure import CallerError, complain
from wirewitness.app.shared.options import hosts_option, keylog_option, read_options, topic_id_option
from wirewitness.app.shared.reading import check_standard_input

_LOOPBACK = "127.0.0.1"


@click.command()
@click.argument("captures", nargs=-1, metavar="[CAPTURE...]")
@click.option("--compare", is_flag=True, help="Put two captures side by side: what differs between them comes first.")
@click.option(
    "--host",
    default=_LOOPBACK,
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen on. Others than this machine then see captures; the printed address has a token for it.",
)
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="A name that browsers reach this server by, such as that of a proxy. Repeatable.",
)
@click.option("--port", type=click.IntRange(1, 65535), help="Port to listen on; without it the first free from 8501.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser; the address is printed.")
@click.option(
    "--decode-as",
    multiple=True,
    metavar="PORT=PROTOCOL",
    help="Read connections to this server port as PROTOCOL. Repeatable.",
)
@topic_id_option
@keylog_option
@hosts_option
@click.option("--enable", multiple=True, metavar="NAME", help="Switch on an optional dissector. Repeatable.")
@click.option(
    "--processes",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    metavar="N",
    help="Share the connections among N processes.",
)
@click.option("--debug", is_flag=True, help="Show the trace when wirewitness itself fails.")
def dashboard(
    *,
    captures: tuple[str, ...],
    compare: bool,
    host: str,
    allowed_hosts: tuple[str, ...],
    port: int | None,
    no_browser: bool,
    decode_as: tuple[str, ...],
    topic_ids: tuple[str, ...],
    enable: tuple[str, ...],
    keylogs: tuple[str, ...],
    hosts: tuple[str, ...],
    processes: int,
    debug: bool,
) -> None:
    """Open a dashboard in the browser: findings, groups, commits, latency, exchanges. Ctrl-C ends it.

    Without CAPTURE it offers samples, what was opened before, and upload. Only this machine can reach it unless --host
    is given. Files that are uploaded may have up to 500 MB and are removed at the end.

    \b
    Examples:
      wirewitness dashboard incident.pcapng
      wirewitness dashboard before.pcapng after.pcapng --compare
      wirewitness dashboard /tmp/watch     (written by: wirewitness live -i eth0 --share /tmp/watch)
      wirewitness dashboard --port 8080 --no-browser captures/
    """  # fmt: skip
    if find_spec("streamlit") is None or find_spec("altair") is None:
        from wirewitness.analyser.base.extras import how_to_install

        raise CallerError(f"the dashboard is not installed; {how_to_install('dashboard')}")
    if compare and len(captures) != 2:
        raise CallerError(f"--compare takes two captures, {len(captures)} given")
    options = read_options(
        decode_as, (), enable, None, None, processes, topic_ids=topic_ids, keylogs=keylogs, hosts=hosts
    )
    with _files(captures, apart=compare) as paths:
        from wirewitness.app.dashboard.serve import serve

        given = {
            "decode_as": {str(number): name for number, name in options.decode_as.items()},
            "enable": list(options.enable), "processes": processes, "topic_ids": options.topic_ids,
            "keylogs": list(options.keylogs), "hosts": list(options.hosts),
        }  # fmt: skip
        try:
            serve(paths, given, host=host, port=port, browser=not no_browser, debug=debug,
                  allowed_hosts=allowed_hosts, compare=compare)  # fmt: skip
        except OSError as error:
            raise CallerError(f"cannot listen on {host}: {error.strerror or error}") from error


@contextmanager
def _files(captures: Sequence[str], *, apart: bool) -> Iterator[list[str]]:
    """The captures, standard input as a file. CallerError when none of them can be read.

    apart: each is looked at by itself, so each must be readable.
    """
    from wirewitness.analyser.archive.dataset.place import one_dataset
    from wirewitness.analyser.base.private_files import TemporaryFolder
    from wirewitness.analyser.capture import CaptureError
    from wirewitness.app.dashboard.snapshots import is_live

    check_standard_input(captures)
    with TemporaryFolder() as folder:
        paths = [_file(name, Path(folder)) for name in captures]
        wrong: list[str] = []
        for one in [[path] for path in paths] if apart else [paths]:
            try:
                dataset = one_dataset(one)
                if dataset is None and not (len(one) == 1 and is_live(one[0])):
                    wrong += _unreadable(one)
            except CaptureError as error:
                raise CallerError(str(error)) from error
        if wrong and (apart or len(wrong) == len(paths)):
            raise CallerError(" ".join(wrong))
        for reason in wrong:
            complain(f"cannot read {reason}")
        yield paths


def _unreadable(paths: Sequence[str]) -> list[str]:
    from wirewitness.analyser.capture import CaptureError, open_captures

    wrong = []
    for path in paths:
        try:
            open_captures([path])
        except CaptureError as error:
            wrong.append(str(error))
    return wrong


def _file(name: str, folder: Path) -> str:
    if name != "-":
        from wirewitness.analyser.base.storage.files import absolute_name

        return absolute_name(name)
    path = folder / "standard-input"
    with path.open("wb") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
    return str(path)
