"""Errors as the server's replies name them.

In: a code. Out: CommandError, whose document() is the reply. Codes and names are of MongoDB's error_codes.yml; the
label RetryableWriteError is set for the codes that the retryable writes specification lists.
"""

from __future__ import annotations

from typing import Any

NAMES = {
    2: "BadValue",
    13: "Unauthorized",
    18: "AuthenticationFailed",
    20: "IllegalOperation",
    26: "NamespaceNotFound",
    27: "IndexNotFound",
    43: "CursorNotFound",
    50: "MaxTimeMSExpired",
    59: "CommandNotFound",
    91: "ShutdownInProgress",
    112: "WriteConflict",
    121: "DocumentValidationFailure",
    189: "PrimarySteppedDown",
    251: "NoSuchTransaction",
    286: "ChangeStreamHistoryLost",
    292: "QueryExceededMemoryLimitNoDiskUseAllowed",
    8000: "AtlasError",
    10107: "NotWritablePrimary",
    11000: "DuplicateKey",
    11600: "InterruptedAtShutdown",
    11601: "Interrupted",
    11602: "InterruptedDueToReplStateChange",
    13435: "NotPrimaryNoSecondaryOk",
    13436: "NotPrimaryOrSecondary",
    10334: "BSONObjectTooLarge",
}
RETRYABLE_WRITE_CODES = {6, 7, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436}


class CommandError(Exception):
    """A command that is answered with ok: 0."""

    def __init__(self, code: int, message: str, labels: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.labels = labels

    def document(self) -> dict[str, Any]:
        """Return the reply."""
        known: dict[str, Any] = {"ok": 0.0, "errmsg": self.message, "code": self.code}
        known["codeName"] = NAMES.get(self.code, f"Location{self.code}")
        return {**known, "errorLabels": list(self.labels)} if self.labels else known
