"""KAF312 authentication-loop: a client's login is refused again and again.

Finds
    Clients whose SASL authentication the broker refuses every time, with user and mechanism where the wire shows them.

Why it matters
    The client never gets in. Each attempt is a new connection that costs the broker a password check, and some clients
    try many times a second. A wrong password looks like a network fault in many client logs ("disconnected").

How it decides
    Refusals (SASL_AUTHENTICATION_FAILED 58, UNSUPPORTED_SASL_MECHANISM 33) of one client id, user and mechanism at one
    broker, none of them followed by an accepted login of the same client. critical from three on (often), else a
    warning: no later try gets in with the same words.

False alarms
    A test of a wrong password. Someone who guesses passwords is found, too; then the address is what counts.

What it cannot tell
    Whether the password is wrong, the user is unknown or the broker lost its credentials: brokers answer alike.
    Logins over TLS are not seen.

References
    KIP-43 and KIP-152 (SaslAuthenticate); connections.max.reauth.ms; the broker's failed-authentication-total.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_S, period_text, seconds_text
from wirewitness.analyser.base.titles import client_title, short
from wirewitness.analyser.base.words import printable, sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.connections import client_keys, client_subject
from wirewitness.analyser.kafka.rules.names import MAX_NAME, client_numbers, client_text

LOGINS = "kafka_authentications"
_NAMES = {58: "SASL_AUTHENTICATION_FAILED, wrong user or password", 33: "UNSUPPORTED_SASL_MECHANISM"}


def detect(frames: Frames, *, often: int = 3) -> Iterator[Finding]:
    """One finding per client id, user, mechanism, broker and error."""
    rows = rows_of(frames[LOGINS])
    refused: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row["error_code"] in _NAMES:
            key = *_who(row), row["mechanism"], row["user_name"], row["error_code"]
            refused.setdefault(key, []).append(row)
    accepted = {_who(row): row["ts"] for row in rows if row["accepted"]}
    for own in refused.values():
        if accepted.get(_who(own[0]), 0) < own[-1]["ts"]:
            yield _finding(own, "critical" if len(own) >= often else "warning")


def _who(row: Row) -> tuple[object, ...]:
    return row["client_id"], row["server_address"], row["server_port"]


def _finding(refused: Sequence[Row], severity: Severity) -> Finding:
    first, last = refused[0], refused[-1]
    user = f"user {printable(first['user_name'], MAX_NAME)}" if first["user_name"] else "a user that is not shown"
    mechanism = printable(first["mechanism"] or "unknown mechanism", MAX_NAME)
    gap_ns = (last["ts"] - first["ts"]) // (len(refused) - 1) if len(refused) > 1 else 0
    pace = f", every {seconds_text(gap_ns)}" if len(refused) > 1 else ""
    often = f"{times(len(refused))}, {period_text(first['ts'], last['ts'])}{pace}"
    words = {row["error_message"] for row in refused if row["error_message"]}
    said = f' ("{printable(min(words), MAX_NAME)}")' if words else ""
    return RULE.finding(
        severity=severity,
        provisional=True,
        title=(
            f"Login refused {times(len(refused))}: {client_title(first)} as "
            f"{short(first['user_name'] or 'a user that is not shown')} at {server_text(first)}"
        ),
        subject={**client_subject(first), "server": server_text(first), "user": first["user_name"]},
        sentence=(
            f"{sentence_start(client_text(first))} tries to log in at {server_text(first)} as {user} ({mechanism}) and "
            f"is refused {often}. "
            f"Error {first['error_code']} ({_NAMES[first['error_code']]}){said}. It never gets in."
        ),
        next_step=(
            "Correct user and password in sasl.jaas.config (or sasl.username and sasl.password) of this client, or "
            "create the user at the broker (kafka-configs.sh --alter --entity-type users)."
            if first["error_code"] != min(_NAMES)
            else "Set sasl.mechanism of this client to one that the listener offers (sasl.enabled.mechanisms)."
        ),
        proof=Proof(
            first["ts"], max(row["ts_response"] or row["ts"] for row in refused),
            (Evidence(None, None, row["exchange_id"]) for row in refused),
        ),
        numbers={
            **client_keys(first),
            "user": first["user_name"],
            "mechanism": first["mechanism"],
            "server": server_of(first),
            "where": server_text(first),
            "error_code": first["error_code"],
            "refusals": len(refused),
            "seconds_between": round(gap_ns / NS_PER_S, 3),
            "clients": [client_numbers(first, refusals=len(refused))],
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF312",
    question="refused",
    name="authentication-loop",
    severity="critical",
    confidence="high",
    reads={
        LOGINS: (
            "ts", "ts_response", "exchange_id", "client_id", "server_address", "server_port", "mechanism", "user_name",
            "accepted", "error_code", "error_message",
        ),
    },
    partition_by=("cluster_id", "client_address"),
    detect=detect,
    suspects=AnyRow(LOGINS, f"error_code IN {tuple(_NAMES)}"),
)  # fmt: skip
