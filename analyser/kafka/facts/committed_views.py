"""Names of the views that all share who look for what stands beside commits; `commit_neighbours.py` makes them."""

from __future__ import annotations

# All changes: what told of each, and its step.
CHANGES = "committed_changes"
# Accepted commits of an offset that is not below 0.
BASE = "committed_base"
# `writers` of `committed_steps.py`; the clients among them, and the logs, each with its number.
WRITERS, READERS, LOGS = "committed_writers", "committed_readers", "committed_logs"
BEFORE = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
