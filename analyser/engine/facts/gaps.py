"""Where something of a connection is missing, as SQL: bytes that a capture lacks, requests that a request log lacks."""

from __future__ import annotations


def is_lost(remarks: str) -> str:
    """The condition that a row of `expert_infos`, here under this name, tells of a loss and when it was noticed."""
    return f"""{remarks}."group" IN ('tcp', 'log') AND {remarks}.code = 'gap' AND {remarks}.ts IS NOT NULL"""
