"""Feeds the MongoDB part with bytes that libFuzzer makes up: `python -m tests.fuzz.fuzz_mongo [SECONDS]`.

In: seconds for all targets together (60 without); `--target NAME` runs one. Targets: those of `tests/fuzz/frame.py` and

    documents     any bytes into the fast reader of fields, the tree that `show` makes and pymongo: what pymongo reads
                  as a document, both read to its end, with the same names
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from tests.fuzz.frame import Spoken, Target, main, message_seeds, targets

SAMPLES = ("mongo_healthy", "mongo_shapes_and_errors", "mongo_compressed")
_BODY_AT = 1 + 16 + 4 + 1  # of a seed: the choice, a message header, flags, the kind of the first section


def check_documents(data: bytes) -> None:
    """DATA is a document, or is none."""
    import bson
    from bson.codec_options import CodecOptions, DatetimeConversion

    from dissectors.mongo.bson_fields import document, whole_fields
    from dissectors.mongo.bson_tree import DocumentWalker

    found = document(data, 0, len(data))
    walked = DocumentWalker(data, lambda _: None, 100_000, payload=True).walk(0, len(data))
    if walked.error is None and walked.pos == len(data):
        assert whole_fields(data, 0, len(data)) is not None
    try:
        true = bson.decode(data, CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS))
    except (bson.InvalidBSON, RecursionError):
        return
    assert (found.error, found.end) == (None, len(data))
    assert {key.decode() for key in found.fields} == set(true)
    assert (walked.error, walked.pos) == (None, len(data))


def document_seeds() -> Iterator[bytes]:
    """The bodies of the lab's commands and replies."""
    yield from (seed[_BODY_AT:] for seed in message_seeds(MONGO) if len(seed) > _BODY_AT)


def framed(body: bytes) -> bytes:
    return (len(body) + 4).to_bytes(4, "little") + body


def bare(payload: bytes) -> bytes | None:
    return payload[4:] if payload == framed(payload[4:]) else None


MONGO = Spoken("mongo", 27017, SAMPLES, framed, bare)
TARGETS = {**targets(MONGO), "documents": Target(check_documents, document_seeds, ["dissectors.mongo"])}

if __name__ == "__main__":
    sys.exit(main("tests.fuzz.fuzz_mongo", TARGETS, sys.argv[1:]))
