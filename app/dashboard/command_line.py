"""What to type for the same on the command line, without the limits of a browser. In: a capture; out: text."""

from __future__ import annotations

import shlex

import streamlit as st

from wirewitness.app.dashboard.offers import without_folder
from wirewitness.app.dashboard.opened import Opened
from wirewitness.app.dashboard.text import line


def show_command(command: str, about: str = "The same on the command line:") -> None:
    """A button that shows what to type for the same; it can be copied there."""
    with st.popover("Command", icon=":material/terminal:", type="tertiary"):
        line(about, "quiet")
        st.code(command, language=None, wrap_lines=True)


def command_line(opened: Opened, command: str, *words: str) -> str:
    """`wirewitness COMMAND CAPTURE... words`, as a shell takes it."""
    captures = [str(opened.folder)] if opened.is_dataset else map(without_folder, opened.paths)
    reading = opened.reading
    options = [f"--decode-as={port}={protocol}" for port, protocol in sorted(reading.decode_as.items())]
    options += [f"--topic-id={name}={topic_id}" for topic_id, name in sorted(reading.topic_ids.items())]
    options += [f"--enable={name}" for name in reading.enable]
    options += [f"--keylog={path}" for path in reading.keylogs]
    options += [f"--hosts={path}" for path in reading.hosts]
    return " ".join(["wirewitness", command, *(shlex.quote(word) for word in (*captures, *words, *options))])
