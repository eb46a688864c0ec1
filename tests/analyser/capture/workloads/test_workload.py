"""Owners: bounded values, and the words that stand in sentences."""

import pytest

from wirewitness.analyser.capture.workloads.workload import MAX_NAME, MAX_WORDS, Owner, owner, owner_words

WORDS = {
    "nobody": (Owner(), ""),
    "process": (Owner(4711, "java"), "java pid 4711"),
    "process without a name": (Owner(4711), "pid 4711"),
    "pod and process": (Owner(4711, "java", pod="payments-7d4f", host="node-1"), "pod payments-7d4f, java pid 4711"),
    "pod of a namespace": (Owner(pod="payments-7d4f", namespace="shop"), "pod payments-7d4f"),
    "container": (Owner(container="8f14e45fceea", host="node-1"), "container 8f14e45fceea"),
    "host": (Owner(host="node-1"), "host node-1"),
    "user alone": (Owner(user="root"), ""),
    "direction mark": (Owner(7, "ja\u202eva"), "ja\\u202eva pid 7"),
}


@pytest.mark.parametrize(("one", "words"), WORDS.values(), ids=WORDS)
def test_words(one: Owner, words: str) -> None:
    assert owner_words(one) == words


def test_words_are_bounded() -> None:
    assert len(owner_words(Owner(command="j" * 1000, pod="p" * 1000))) == 2 * MAX_WORDS + len("pod , ")


def test_names_are_bounded_and_what_cannot_be_is_nothing() -> None:
    one = owner(pid=0, command=" \n", pod="p" * 1000, user="", source="comment")
    assert one == Owner(pod="p" * MAX_NAME, source="comment")
    assert owner(pid=-1).pid is None
    assert owner(pid=1 << 32).pid is None
    assert not owner(pid=0).known
    assert one.known
