"""What an alert says in words. In: its name, and who sent it. Out: the reason, and what to do.

Sources: RFC 8446, 6.2; RFC 5246, 7.2.2. What libraries send in which case was seen: OpenSSL says bad_certificate where
the name does not match, and unknown_ca for an issuer that it does not know; Java says certificate_unknown for both.
"""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """reason: a clause, `{whose}` the one whose certificate it is. step: what to do."""

    reason: str
    step: str


# What it means that a server refuses a client which it asked for a certificate and which sent none, whatever it says.
MISSING = "certificate_required"
# Alerts about the certificate of whoever did not send them.
CERTIFICATE_ALERTS = (
    "bad_certificate", "unsupported_certificate", "certificate_revoked", "certificate_expired", "certificate_unknown",
    "unknown_ca", "certificate_required", "no_certificate", "bad_certificate_hash_value",
)  # fmt: skip

_TRUST = "Put the issuer's certificate into the trust store of the side that refuses."
_NAME_OR_TRUST = (
    "Compare the issuer of {whose} certificate with the trust store of the side that refuses, and its names with the "
    "one that is asked for."
)
_VERSIONS = "Compare the versions and cipher suites that both sides allow."
_LIBRARIES = "Compare the libraries of both sides and what is between them; capture at both ends."

_WORDS: dict[str, Words] = {
    "unknown_ca": Words("the issuer of {whose} certificate is not trusted", _TRUST),
    "certificate_unknown": Words(
        "{whose} certificate is not accepted (so says Java of an issuer that it does not know, and of a wrong name)",
        _NAME_OR_TRUST,
    ),
    "bad_certificate": Words(
        "{whose} certificate is not accepted (so says OpenSSL of a wrong name, and Java of none)", _NAME_OR_TRUST
    ),
    "certificate_expired": Words(
        "{whose} certificate is out of its time",
        "Renew {whose} certificate, or set the clock of the side that refuses.",
    ),
    "certificate_revoked": Words("{whose} certificate is revoked", "Replace {whose} certificate."),
    "unsupported_certificate": Words(
        "{whose} certificate is of a kind that is not supported",
        "Look at the key type and the key usage of {whose} certificate.",
    ),
    "certificate_required": Words(
        "the client sent no certificate",
        "Give the client a certificate and its key, or let the server not ask for one.",
    ),
    "no_certificate": Words(
        "the client sent no certificate",
        "Give the client a certificate and its key, or let the server not ask for one.",
    ),
    "protocol_version": Words("both sides have no version of TLS in common", _VERSIONS),
    "insufficient_security": Words("the suites that were offered are too weak", _VERSIONS),
    "inappropriate_fallback": Words("the client tried an older version than it needs to", _VERSIONS),
    "handshake_failure": Words("both sides have no cipher suite in common, or a certificate is missing", _VERSIONS),
    "unrecognized_name": Words(
        "the server does not know the name that the client asks for",
        "Correct the host name at the client or the server.",
    ),
    "no_application_protocol": Words(
        "both sides have no protocol in common (ALPN)", "Compare what both sides set for ALPN."
    ),
    "access_denied": Words("access is denied", "Look at who may connect at the server."),
    "unknown_psk_identity": Words(
        "the server does not know the client's key", "Compare the shared keys of both sides."
    ),
    "decrypt_error": Words(
        "a signature or key does not fit", "Check that certificate and key of each side belong together."
    ),
    "unexpected_message": Words(
        "something else than TLS was expected next", "Look at which protocol the port and the client are set to."
    ),
}
_UNNAMED = {
    "client": Words(
        "the alert is encrypted, so its name is not seen; at this point clients refuse the server's certificate",
        "Compare the server's certificate with the client's trust store and the name that it asks for; a key log "
        "(--keylog) or the client's own log names the alert.",
    ),
    "server": Words(
        "the alert is encrypted, so its name is not seen", "Give a key log (--keylog), or look at the server's log."
    ),
}


def words_of(alert: str | None, sender: str) -> Words:
    """sender: client or server. alert: None for one that is encrypted."""
    whose = "the server's" if sender == "client" else "the client's"
    if alert is None:
        found = _UNNAMED[sender]
    else:
        found = _WORDS.get(alert, Words("the other side broke the rules of TLS, or something between did", _LIBRARIES))
    return Words(found.reason.format(whose=whose), found.step.format(whose=whose))
