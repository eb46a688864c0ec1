"""Live captures in the dashboard: started and stopped from here, or written by a `wirewitness live --share` elsewhere.

In: an interface, or a folder. Out: offers whose tables change while they are looked at.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path

import streamlit as st

from wirewitness.analyser.base.private_files import TemporaryFolder
from wirewitness.app.dashboard.jobs import import_path
from wirewitness.app.dashboard.offers import Offer, live_offer
from wirewitness.app.dashboard.snapshots import is_live, is_running, newest, title_of
from wirewitness.app.dashboard.text import card, line
from wirewitness.reports.base.formats.values import time_text

REFRESH_S = 2.0
_PATIENCE_S = 10.0
_ERROR_CHARACTERS = 2000
_RUNS_KEPT = 6


class LiveRun:
    """One capture that this dashboard started: a `wirewitness live` of its own."""

    def __init__(self, folder: Path, interface: str, ports: str) -> None:
        self.folder = folder
        self._stopped = False
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  lives as long as the process
        words = ["live", "-i", interface, "--share", str(folder), "--quiet", *(["--ports", ports] if ports else [])]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "wirewitness.app.cli.live_program", *words],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,  # standard input is closed when this process ends
            stderr=self._errors, env={**os.environ, "PYTHONPATH": import_path()}, process_group=0,
        )  # fmt: skip
        weakref.finalize(self, _end, self._process)

    @property
    def running(self) -> bool:
        """Whether it still captures."""
        return self._process.poll() is None

    @property
    def error(self) -> str:
        """What it said when it could not go on; nothing where somebody stopped it."""
        if self._stopped or self.running or self._process.returncode == 0:
            return ""
        self._errors.seek(0)
        return self._errors.read(_ERROR_CHARACTERS).decode("utf-8", "replace").strip()

    def stop(self) -> None:
        """End it as Ctrl-C does; the tables stay."""
        self._stopped = self._stopped or self.running
        _end(self._process)


class LiveRuns:
    """The captures that this server started, in a folder that goes with it."""

    def __init__(self) -> None:
        self._folder = TemporaryFolder("live")
        self._runs: dict[str, LiveRun] = {}
        self._number = 0

    def start(self, interface: str, ports: str) -> Offer:
        """Begin to capture. Of captures that have ended the oldest go, with their tables."""
        self._number += 1
        folder = Path(self._folder.name) / f"{self._number}"
        folder.mkdir()
        self._runs[str(folder)] = LiveRun(folder, interface, ports)
        ended = [path for path, run in self._runs.items() if not run.running]
        for path in ended[: max(len(self._runs) - _RUNS_KEPT, 0)]:
            self._runs.pop(path).stop()
            shutil.rmtree(path, ignore_errors=True)
        return live_offer(str(folder), f"live {interface}")

    def run_of(self, folder: str) -> LiveRun | None:
        """The capture that writes there, when it was started here."""
        return self._runs.get(folder)

    def offers(self) -> list[Offer]:
        """Newest first."""
        return [live_offer(folder, f"live {title_of(Path(folder))}") for folder in reversed(self._runs)]

    def close(self) -> None:
        """End them all and remove what they wrote."""
        for run in self._runs.values():
            run.stop()
        self._folder.cleanup()


@st.cache_resource(show_spinner=False, on_release=lambda runs: runs.close())
def live_runs() -> LiveRuns:
    """The captures of this server."""
    return LiveRuns()


def live_folder(offer: Offer) -> Path | None:
    """Where the changing tables of an offer are; None for a capture that stands still."""
    if len(offer.paths) != 1:
        return None
    folder = Path(offer.paths[0])
    return folder if is_live(folder) or live_runs().run_of(str(folder)) is not None else None


def show_start() -> Offer | None:
    """Choose an interface and start; the offer of what was started."""
    st.subheader("Live", anchor=False)
    names = [name for _, name in socket.if_nameindex()]
    one, two = st.columns(2)
    with one:
        interface = st.selectbox("Interface", names, key="ww_interface")
    with two:
        ports = st.text_input("TCP ports", key="ww_ports", placeholder="all, or 9092,1883")
    started = st.button("Start", key="ww_start", icon=":material/play_arrow:")
    if not started or not interface:
        return None
    wanted = [port.strip() for port in (ports or "").split(",") if port.strip()]
    if not all(port.isdecimal() and 0 < int(port) < 65536 for port in wanted):
        card("Not ports", "Write numbers from 1 to 65535 with commas between them.", "warning")
        return None
    return live_runs().start(interface, ",".join(wanted))


@st.fragment(run_every=1.0)
def show_waiting(offer: Offer, folder: Path) -> None:
    """Until the first tables are there, or why none will come."""
    run = live_runs().run_of(str(folder))
    if newest(folder) is not None:
        st.rerun()
    if run is not None and not run.running:
        said = run.error
        card(f"{offer.title} ended", said or "No packet was captured.", "critical" if said else "info")
    elif run is None and not is_running(folder):
        card(f"{offer.title} ended", "It ended before there was anything to show.", "critical")
    else:
        card(
            offer.title,
            f"Waiting for packets of {title_of(folder)}.",
            "info",
            foot="The pages come with the first. Where none comes, the interface or the ports are others.",
        )
    if run is not None and run.running:
        st.button("Stop", key="ww_stop_waiting", on_click=run.stop, icon=":material/stop:")


@st.fragment(run_every=REFRESH_S)
def follow(folder: Path, shown: str) -> None:
    """In the sidebar: what is going on; the page is drawn anew when there are newer tables. shown: those drawn now."""
    run = live_runs().run_of(str(folder))
    running = is_running(folder)
    number = shown.rpartition("-")[2]
    line(f"{'Live' if running else 'Live, ended'}: tables of {time_text(int(number))[11:19]} UTC", "quiet")
    following = st.toggle("Follow", value=True, key="ww_follow") if running else True
    if run is not None and run.running:
        st.button("Stop capturing", key="ww_stop", on_click=run.stop, icon=":material/stop:")
    now = newest(folder)
    if following and now is not None and now.name != shown:
        st.rerun()


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
