"""Identities: bounded values, and the words that stand in sentences."""

import pytest

from wirewitness.analyser.capture.workloads.workload import MAX_NAME, MAX_WORDS, Identity, identity, identity_words

WORDS = {
    "nobody": (Identity(), ""),
    "process": (Identity(4711, "java"), "java pid 4711"),
    "process without a name": (Identity(4711), "pid 4711"),
    "pod and process": (Identity(4711, "java", pod="payments-7d4f", host="node-1"), "pod payments-7d4f, java pid 4711"),
    "pod of a namespace": (Identity(pod="payments-7d4f", namespace="shop"), "pod payments-7d4f"),
    "container": (Identity(container="8f14e45fceea", host="node-1"), "container 8f14e45fceea"),
    "host": (Identity(host="node-1"), "host node-1"),
    "user alone": (Identity(user="root"), ""),
    "direction mark": (Identity(7, "ja\u202eva"), "ja\\u202eva pid 7"),
}


@pytest.mark.parametrize(("one", "words"), WORDS.values(), ids=WORDS)
def test_words(one: Identity, words: str) -> None:
    assert identity_words(one) == words


def test_words_are_bounded() -> None:
    assert len(identity_words(Identity(command="j" * 1000, pod="p" * 1000))) == 2 * MAX_WORDS + len("pod , ")


def test_names_are_bounded_and_what_cannot_be_is_nothing() -> None:
    one = identity(pid=0, command=" \n", pod="p" * 1000, user="", source="comment")
    assert one == Identity(pod="p" * MAX_NAME, source="comment")
    assert identity(pid=-1).pid is None
    assert identity(pid=1 << 32).pid is None
    assert not identity(pid=0).known
    assert one.known
