"""Files that have to be on this machine. In: what the user gave. Out: a line about an address of a store, or none."""

from __future__ import annotations

from wirewitness.app.shared.failure import CallerError

ELSEWHERE = "that is an address in a store; it has to be a file of this machine"


def is_elsewhere(name: str) -> bool:
    """Does it name something in an object store or in HDFS?"""
    from wirewitness.analyser.base.storage.address import address_of

    return address_of(name) is not None


def check_is_local(name: str, option: str = "", hint: str = "") -> None:
    """CallerError for an address in a store. option: what it was given with. hint: goes on after the sentence."""
    if is_elsewhere(name):
        raise CallerError(f"{option}{' ' if option else ''}{name}: {ELSEWHERE}{hint}")
