"""The page without a capture, and the one while a capture is analysed. In: offers; out: a choice, or the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from wirewitness.analyser.archive.dataset.place import one_dataset
from wirewitness.analyser.base.storage.folders import FolderPath, folder_at
from wirewitness.analyser.capture import CaptureError
from wirewitness.app.dashboard import server_state, state
from wirewitness.app.dashboard.jobs import Job, Standing, kept_tables, key_of
from wirewitness.app.dashboard.live import live_folder, live_runs, show_start, show_waiting
from wirewitness.app.dashboard.offered import given
from wirewitness.app.dashboard.offers import UPLOAD_LIMIT_MB, Offer, recent, samples, without_folder
from wirewitness.app.dashboard.snapshots import newest
from wirewitness.app.dashboard.text import card, html, line, show
from wirewitness.dissectors.registry import PROTOCOLS
from wirewitness.reports.base.formats.words import size

_POLL_S = 1.0
_TELLING_S = 2.0


def show_landing(*, unknown: bool) -> None:
    """Samples, recent captures and upload."""
    line("wirewitness", "title")
    st.header("Open a capture", anchor=False)
    if unknown:
        card("That capture is not offered here any more.", "Open it again below, or name it on the command line.",
             "warning")  # fmt: skip
    own, offered = st.columns([2, 3], gap="large")
    with own:
        _upload()
        if server_state.private():
            started = show_start()
            if started is not None:
                _open(started)
        others = [*live_runs().offers(), *recent()] if server_state.private() else []
        _offers("Recent", _once([*given().offers, *server_state.own_uploads(), *others]))
    with offered:
        for kind, dissector in PROTOCOLS.items():
            _offers(f"{dissector.title} samples", [offer for offer in samples() if offer.kind == kind])


def _upload() -> None:
    st.subheader("Upload", anchor=False)
    file = st.file_uploader(
        "pcap or pcapng, a request log, a log segment, also .gz, .zst, .lz4",
        max_upload_size=UPLOAD_LIMIT_MB,
        key="ww_upload",
    )
    st.caption(
        "At most 500 MB: a file that turns red is larger and was not taken. Any size: wirewitness dashboard FILE. "
        "Uploads lie in a temporary folder until the dashboard ends."
    )
    if file is not None:
        _open(server_state.uploads().add(file.name, file.getbuffer(), server_state.visitor()))


def _once(offers: Sequence[Offer]) -> list[Offer]:
    """Each content once, at its first place."""
    found: dict[str, Offer] = {}
    for offer in offers:
        found.setdefault(offer.id, offer)
    return list(found.values())


def _offers(title: str, offers: Sequence[Offer]) -> None:
    if not offers:
        return
    show(html('<h3 style="font-size:1.05rem;margin:.6rem 0 0 0;padding:0">{title}</h3>', title=title))
    for number, offer in enumerate(offers, 1):
        way, words = st.columns([1, 7], vertical_alignment="center", gap="small")
        with way:  # names of samples are our own
            about = offer.id if offer.kind in PROTOCOLS else f"{title.lower()} {number}"
            state.link("overview", "Open", about, capture=offer.id)
        with words:
            show(
                html(
                    '<div class="ww-title">{title} <span class="ww-quiet">{size}</span></div>'
                    '<div class="ww-quiet">{note}</div>',
                    title=offer.title, size=offer.size, note=offer.note,
                )
            )  # fmt: skip


def _open(offer: Offer) -> None:
    state.forget()
    state.go("overview", capture=offer.id)


def close() -> None:
    """Back to the landing page."""
    st.session_state["ww_closed"] = True
    state.forget()


def tables_of(offer: Offer) -> tuple[str, FolderPath | None]:
    """Under which key the tables of a capture are kept, or why it cannot be read; and where they are if they are."""
    known: dict[str, str] = st.session_state.setdefault("ww_keys", {})
    folder = live_folder(offer)
    if folder is not None:
        return "", newest(folder)
    try:
        dataset = one_dataset(offer.paths)
    except CaptureError as error:
        return str(error), None
    if dataset is not None:
        return "", folder_at(dataset)
    if offer.id not in known:
        try:
            known[offer.id] = key_of(offer.paths, offer.options)
        except CaptureError as error:
            return str(error), None
    return known[offer.id], kept_tables(known[offer.id], server_state.jobs())


def show_reading(offer: Offer, key: str, leave: Callable[[], None] | None = None) -> None:
    """Progress while the tables are made, or why they cannot be.

    key: what `tables_of` said. leave: see `show_failed`.
    """
    folder = live_folder(offer)
    if folder is not None:
        show_waiting(offer, folder)
        st.button("Open another capture", on_click=leave or close, key="ww_other_live")
        return
    if key not in st.session_state["ww_keys"].values():
        show_failed(offer, key, leave)
        return
    jobs = server_state.jobs()
    job = jobs.job(key)
    if job is not None and job.error is not None:
        jobs.forget(key)
        st.session_state["ww_keys"].pop(offer.id, None)
        show_failed(offer, job.error, leave)
        return
    _progress(offer, jobs.start(offer.paths, offer.options, key), key, leave or close)


@st.fragment(run_every=_POLL_S)
def _progress(offer: Offer, job: Job, key: str, leave: Callable[[], None]) -> None:
    job.wait(0.05)
    if not job.running:
        st.rerun()
    again = ", again: what was kept of it is damaged or gone" if st.session_state.get("ww_gone") else ""
    card(f"Analysing {offer.title}{again}", job.standing.sentence, "info",
         foot=progress_words(offer.size, job.standing, job.passed_s))  # fmt: skip
    st.progress(min(job.standing.share or 0.0, 1.0))
    if st.button("Cancel", key="ww_cancel"):
        job.cancel()
        server_state.jobs().forget(key)
        leave()
        st.rerun()


def progress_words(large: str, standing: Standing, passed_s: float) -> str:
    """`2.3 MB, 40% after 12 s, 120.0 kB/s, about 18 s left`; rate and what is left only once they can be told."""
    share = standing.share
    if not share or passed_s < _TELLING_S:
        return large
    rate = f"{size(round(standing.read_bytes / passed_s))}/s, " if standing.read_bytes else ""
    left_s = passed_s * (1 - min(share, 1.0)) / share
    return f"{large}, {share:.0%} after {passed_s:.0f} s, {rate}about {left_s:.0f} s left"


def show_failed(offer: Offer, reason: str, leave: Callable[[], None] | None = None) -> None:
    """Why a capture cannot be shown, and the way back. leave: what that does besides, to the start page without it."""
    card(f"{offer.title} cannot be read.", without_folder(reason), "critical")
    st.button("Open another capture", on_click=_leave, args=(offer, leave or close), key="ww_other")


def _leave(failed: Offer, leave: Callable[[], None]) -> None:
    server_state.uploads().drop(server_state.visitor(), failed.id)
    leave()
