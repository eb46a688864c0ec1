"""Files that name addresses, recognised by their content. In: paths. Out: entries, or one line that says what is wrong.

Four forms: /etc/hosts, CSV and TOML with times, and what `kubectl get pods -o json` writes.
"""

from __future__ import annotations

from collections.abc import Iterable

from wirewitness.analyser.capture.workloads.address_names import AddressNames, Entry, NamesFile
from wirewitness.analyser.capture.workloads.hosts_file import csv_entries, hosts_entries, toml_entries
from wirewitness.analyser.capture.workloads.pods_file import pods_entries

# Some 10,000 pods as kubectl writes them; parsed it takes about eight times as much memory.
MAX_BYTES = 128 << 20
MAX_ENTRIES = 500_000
FORMS = "an /etc/hosts file, CSV or TOML with addresses and names, or `kubectl get pods -o json`"


class NamesFileError(ValueError):
    """A file that cannot be used; the text is one line for people."""


def read_names(paths: Iterable[str]) -> AddressNames:
    """The files together. NamesFileError."""
    return AddressNames(map(read_file, paths))


def read_file(path: str) -> NamesFile:
    """One file. NamesFileError where it cannot be read, is too large, or has none of the forms."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise NamesFileError(f"{path} cannot be read: {error.strerror}") from error
    return parsed(path, data)


def parsed(path: str, data: bytes) -> NamesFile:
    """The file with this content. NamesFileError likewise."""
    if len(data) > MAX_BYTES:
        raise NamesFileError(f"{path} is larger than {MAX_BYTES >> 20} MB: name only the pods or hosts that matter")
    text = data.decode("utf-8-sig", "replace")
    if "\0" in text:
        raise NamesFileError(f"{path} does not name addresses: it is {FORMS} that is wanted")
    try:
        entries, passed_over = _entries(text)
    except (ValueError, RecursionError, MemoryError) as error:
        raise NamesFileError(f"{path} does not name addresses ({_short(error)}): {FORMS} is wanted") from error
    if len(entries) > MAX_ENTRIES:
        raise NamesFileError(f"{path} names more than {MAX_ENTRIES:,} addresses")
    return NamesFile(path, tuple(entries), passed_over)


def _entries(text: str) -> tuple[list[Entry], int]:
    """Entries, and how many parts were passed over. ValueError for what has none of the forms."""
    start = text.lstrip()
    if start.startswith("{"):
        return pods_entries(text)
    first = next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), "")
    if first.lstrip().startswith("[") or ("=" in first and "," not in first):
        return toml_entries(text)
    if "," in first and "address" in first.lower():
        return csv_entries(text)
    return hosts_entries(text)


def _short(error: BaseException) -> str:
    return str(error).partition("\n")[0][:100] or type(error).__name__
