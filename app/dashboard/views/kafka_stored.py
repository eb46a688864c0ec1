"""The offsets that brokers stored for groups, from log segments."""

from __future__ import annotations

import streamlit as st

from wirewitness.app.dashboard.few_rows import grid
from wirewitness.app.dashboard.opened import Selected
from wirewitness.app.dashboard.text import line
from wirewitness.reports.base.formats.values import time_text
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.protocols.kafka.questions.stored_offsets import StoredOffset, stored_offsets
from wirewitness.reports.protocols.kafka.sections.stored import stored_sentence

_COLUMNS = (
    Column("group_id", "Group", "text", 190),
    Column("topic", "Topic", "text", 150),
    Column("partition", "Partition", "plain", 74),
    Column("committed_offset", "Committed", "offset", 90),
    Column("stored_at", "Stored at", "text", 220),
    Column("stored", "Times", "count", 70),
    Column("went_back", "Went back", "count", 84),
    Column("back_from", "From", "offset", 84),
    Column("back_to", "To", "offset", 84),
)


def show_stored(source: Selected) -> None:
    """What stands for each group and partition; nothing where no log segment was read."""
    known = stored_offsets(source)
    if not known:
        return
    st.subheader("Stored offsets", anchor=False)
    line(stored_sentence(known))
    grid("stored", [_row(one) for one in known], _COLUMNS, "partition")


def _row(one: StoredOffset) -> dict[str, object]:
    told = {column.name: getattr(one, column.name, None) for column in _COLUMNS}
    return {**told, "stored_at": time_text(one.last_ns)}
