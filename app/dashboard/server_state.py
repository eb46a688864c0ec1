"""What the server holds for all its sessions: analyses that run, uploads, opened captures."""

from __future__ import annotations

import secrets

import streamlit as st

from wirewitness.analyser.archive.dataset.place import is_dataset
from wirewitness.analyser.base.storage.folders import StorePath, folder_at
from wirewitness.app.dashboard.access import visitor_cookie
from wirewitness.app.dashboard.jobs import Jobs
from wirewitness.app.dashboard.offers import Offer, Uploads
from wirewitness.app.dashboard.opened import Opened


@st.cache_resource(show_spinner=False)
def jobs() -> Jobs:
    """The analyses of this server."""
    return Jobs()


@st.cache_resource(show_spinner=False)
def uploads() -> Uploads:
    """The uploads of this server."""
    return Uploads()


def visitor() -> str:
    """Who looks: the browser by the cookie that the gate gave it; a session without one is somebody of its own."""
    told = st.context.cookies.get(visitor_cookie(st.get_option("server.port")))
    return str(told or st.session_state.setdefault("ww_visitor", secrets.token_hex(16)))


def own_uploads() -> list[Offer]:
    """What this visitor uploaded, newest first; what others did is theirs."""
    return uploads().offers(visitor())


def private() -> bool:
    """Whether only people of this machine reach the server: others are shown no paths and start no captures."""
    found: bool = st.session_state.get("ww_private", True)
    return found


@st.cache_resource(show_spinner=False, max_entries=6, on_release=lambda opened: opened.close())
def opened(folder: str, version: str) -> Opened:
    """Kept tables or a dataset, opened once for all sessions. version: changes when a dataset does."""
    path = folder_at(folder)
    return Opened.dataset(path) if isinstance(path, StorePath) or is_dataset(path) else Opened.kept(path)
