"""Words that any right sentence about a class of fault may use, where several incidents share them."""

from __future__ import annotations

REFUSED = [
    "refus", "den(y|ied)", "not allowed", "not auth", "unauth", "reject", "turn(s|ed) away", "not (let|taken) in",
    "not accepted", "0x8\\d", "0x9\\w", "13\\d", "128", "return code", "reason", "identifier", "clos(ed|es)", "in vain",
    "password", "log.?in", "credential",
]  # fmt: skip
LOST = [
    "lost", "lose", "miss", "never (got|reach|arriv|deliver|sent|came)", "not (get|got|reach|deliver|sent|forward)",
    "did not (get|reach|receive)", "no delivery", "drop", "discard", "queue", "away", "nobody", "without deliver",
    "fewer",
]  # fmt: skip
CUT_OFF = [
    "keep.?alive", "PINGREQ", "ping", "cut", "clos(ed|es) by", "clos(ed|es)", "again and again", "flap", "times",
    "comes back", "reconnect", "timed? ?out",
]  # fmt: skip
REPEATED = [
    "twice", "two times", "again", "duplicat", "identical", "same (payload|message|value|reading|content)", "repeat",
    "copies", "copy", "unchanged", "DUP", "re-?sen[dt]", "redeliver", "retransmi",
]  # fmt: skip
SILENT = [
    "silent", "stopp", "no (more|longer|answer|result|reply|message|publish|request)", "quiet", "nothing", "ceas",
    "last (message|publish|value)", "does not (publish|answer|reply|send)", "never (publish|answer|repl)",
    "without (an )?(answer|result|reply)", "unanswered", "unlike", "publishes none", "only (receives|reads|takes)",
]  # fmt: skip
