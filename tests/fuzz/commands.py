"""Whole commands on captures, as a user runs them, in this process.

In: two bytes that choose the command, then a capture file. Out: AssertionError where a command ends with 70 or shows a
trace; what it prints is of no interest here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random

from tests.app.program import run
from tests.fuzz import layers, segments
from tests.fuzz.checks import folder
from tests.fuzz.mutate import broken
from tests.fuzz.pieces import SAMPLES, Spoken, packets
from tests.support.packets import pcap
from wirewitness.analyser.tables.tables import TABLES

_OURS = re.compile(r'File "[^"]*/(?:analyser|app|dissectors|reports)/[^"]*?(\w+)\.py", line \d+, in (\S+)')
_RAISED = re.compile(r"internal error, please report it: (\w+)|^(\w+(?:Error|Exception|Interrupt))\b", re.M)
_CAPTURE, _OUT = "CAPTURE", "OUT"
_TABLES = [
    ["table", name, _CAPTURE, "--format", form]
    for name, form in zip(TABLES, ["csv", "jsonl", "table"] * 40, strict=False)
]
COMMANDS: list[list[str]] = [
    *(["analyse", _CAPTURE, "--format", form] for form in ("text", "json", "html", "markdown")),
    *(
        ["groups", _CAPTURE, *more]
        for more in ([], ["--state"], ["--changes"], ["--members"], ["--rebalances"], ["--start-up"], ["--over-time"])
    ),
    *([name, _CAPTURE, "--format", "jsonl"] for name in ("topics", "brokers", "clients", "records", "shapes")),
    ["table", "messages", _CAPTURE, "--payload", "--format", "parquet", "--output", _OUT],
    ["query", _CAPTURE, "select count(*) from messages", "--format", "csv"],
    ["otel", _CAPTURE, "--output", _OUT],
    *(["show", _CAPTURE, "--no-index", "--payload", "--packet", str(number)] for number in (1, 4, 5, 9)),
    ["show", "MESSAGES"],
    ["extract", "FLOWS"],
    ["extract", "FINDINGS"],
    *_TABLES,
]


class CommandFailed(AssertionError):
    """A command that ended with a fault of ours. place: tells one such fault from another."""

    def __init__(self, name: str, told: str) -> None:
        super().__init__(f"{name}\n{told}")
        raised = "".join(next((part for part in found if part) for found in _RAISED.findall(told)[-1:]))
        self.place = "-".join([raised or name, *(".".join(frame) for frame in _OURS.findall(told)[-2:])])


def check(data: bytes) -> None:
    """Run the chosen command."""
    words = COMMANDS[int.from_bytes(data[:2], "big") % len(COMMANDS)]
    capture, out = folder() / "capture.pcapng", folder() / "out.pcapng"
    capture.write_bytes(data[2:])
    out.unlink(missing_ok=True)
    if words[1] == "MESSAGES":
        for one in _ids("messages", "message_id"):
            run_cli("show", str(capture), one, "--no-index", "--exchange", "--format", "json")
    elif words[1] == "FLOWS":
        for one in _ids("flows", "flow_id"):
            run_cli("extract", str(capture), "--no-index", "--flow", one, "--redact", "--output", str(out))
            out.unlink(missing_ok=True)
    elif words[1] == "FINDINGS":
        for one in _ids("findings", "finding_id"):
            run_cli("extract", str(capture), "--no-index", "--finding", one, "--redact", "--output", str(out))
            out.unlink(missing_ok=True)
    else:
        run_cli(*({_CAPTURE: str(capture), _OUT: str(out)}.get(word, word) for word in words))


def _ids(table: str, column: str, most: int = 3) -> list[str]:
    """Some ids of a table."""
    said = run_cli("table", table, str(folder() / "capture.pcapng"), "--columns", column, "--format", "jsonl")
    return list(dict.fromkeys(json.loads(line)[column] for line in said.splitlines()))[:most]


def run_cli(*words: str, cache: Path | None = None) -> bytes:
    """Standard output; AssertionError with the trace when the command is at fault. cache: where it keeps what it
    learns."""
    done = run(*words, "--quiet", "--debug", XDG_CACHE_HOME=str(cache or folder()))
    errors = done.stderr.decode("utf-8", "replace")
    is_ours = done.returncode not in (0, 1, 2, 3) or "Traceback" in errors or "a fault of wirewitness" in errors
    if is_ours or b"dissector_bug" in done.stdout:
        raise CommandFailed(f"{words[0]} ends with {done.returncode}", errors)
    return done.stdout


def made(spoken: list[Spoken], dice: Random) -> bytes:
    """A command, and a capture of a made-up decoder, of broken TCP or of any packets."""
    match dice.randrange(6):
        case 0:
            capture = layers.capture_file(dice)
        case 1:
            capture = pcap(segments.packets(segments.change(b"", dice)), nanoseconds=True)
        case 2:
            sample = dice.choice(sorted(SAMPLES.glob("*.pcapng"))).read_bytes()
            capture = broken(sample[: dice.choice([4_000, 16_000, 40_000])], dice)
        case _:
            one = dice.choice(spoken)
            pieces = [piece for _ in range(dice.choice([1, 3])) for piece in one.talk(dice)]
            from tests.fuzz.pieces import joined

            capture = pcap(packets(one, joined(dice.choice([0, 1, 3, 8, 9]), pieces)), nanoseconds=True)
    return dice.randrange(len(COMMANDS)).to_bytes(2, "big") + layers.packed(capture, dice)


def change(spoken: list[Spoken], data: bytes, dice: Random) -> bytes:
    """Made anew, another command on the same capture, or broken."""
    match dice.randrange(4):
        case 0:
            return dice.randrange(len(COMMANDS)).to_bytes(2, "big") + data[2:]
        case 1:
            return data[:2] + broken(data[2:], dice)
        case _:
            return made(spoken, dice)
