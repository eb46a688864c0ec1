"""Documents and a message that others have published: no encoder of this project made them."""

from __future__ import annotations

import bson
import pytest

from tests.dissectors.mongo.wire import Wire
from tests.support.mongo_examples import ALL_TYPES, BROKEN_DOCUMENTS, SHELL_INSERT
from wirewitness.dissectors.mongo.bson_tree import DocumentWalker


def walker(data: bytes) -> DocumentWalker:
    return DocumentWalker(data, lambda keys: None, 10_000, payload=True)


def test_every_type_is_walked() -> None:
    walked = walker(ALL_TYPES).walk(0, len(ALL_TYPES))
    assert (walked.error, walked.pos) == (None, len(ALL_TYPES))
    assert [node.name for node in walked.nodes] == list(bson.decode(ALL_TYPES))
    plain = {node.name: node.value for node in walked.nodes}
    assert (plain["String"], plain["Int32"], plain["Int64"], plain["Double"]) == ("string", 42, 42, -1.0)
    assert (plain["True"], plain["False"]) == (True, False)


@pytest.mark.parametrize("text", BROKEN_DOCUMENTS.values(), ids=BROKEN_DOCUMENTS.keys())
def test_a_broken_document_is_not_taken_for_whole(text: str) -> None:
    data = bytes.fromhex(text)
    walked = walker(data).walk(0, len(data))
    # A reader of documents may go on behind a document's end; it must know that it has not come to the last byte.
    assert walked.error is not None or walked.pos < len(data)


def test_the_old_shells_insert_has_its_sequence_first_and_a_checksum() -> None:
    wire = Wire().client(SHELL_INSERT).finish()
    columns = ("command", "database", "collection", "documents_sent", "checksum_ok", "request_id")
    assert wire.command(*columns) == ("insert", "test", "foo", 1, True, 15)
    broken = Wire().client(SHELL_INSERT.replace(b"foo", b"fop")).finish()
    assert broken.command("collection", "checksum_ok") == ("fop", False)
