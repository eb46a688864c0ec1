"""Where something of a connection is missing, as SQL: bytes that a capture lacks, requests that a request log lacks."""

from __future__ import annotations

# Of `flows`: one direction is not in the capture. Stream bytes of one side, and of the other no packet at all: an ACK,
# a FIN or an RST of it shows that it was captured and had nothing to say.
_UNSEEN = "ts_last_from_{0} IS NULL AND acked_by_{0} IS NULL AND coalesce('{0}' NOT IN (closed_by, reset_by), true)"
IS_ONE_SIDED = (
    "(coalesce(bytes_to_server, 0) = 0) <> (coalesce(bytes_to_client, 0) = 0) AND NOT coalesce(handshake_seen, false) "
    f"AND CASE WHEN coalesce(bytes_to_client, 0) = 0 THEN {_UNSEEN.format('server')} "
    f"ELSE {_UNSEEN.format('client')} END"
)


def is_lost(remarks: str) -> str:
    """The condition that a row of `expert_infos`, here under this name, tells of a loss and when it was noticed."""
    return f"""{remarks}."group" IN ('tcp', 'log') AND {remarks}.code = 'gap' AND {remarks}.ts IS NOT NULL"""
