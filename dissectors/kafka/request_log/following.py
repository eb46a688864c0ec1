"""Where a reader went on behind an answer whose records nobody has seen, as its next Fetch tells.

A log has sizes of records in place of their offsets. A consumer that was given records asks for what lies behind them
next, so the next offset that it names, where that is a later one, says how far the answer led it. A partition that it
does not name again is not known.
"""

from __future__ import annotations

from wirewitness.dissectors.kafka.rows.fetch_sessions import Asked
from wirewitness.dissectors.kafka.rows.group_rows import topic_key
from wirewitness.dissectors.kafka.schema.primitives import UNSEEN, Value


def settled(answer: Value | None, asked: Asked | None) -> Asked | None:
    """What was asked of the partitions in an answer, whatever later requests do to the session."""
    if answer is None or asked is None:
        return asked
    answered = [
        (*topic_key(topic), partition["partition_index"])
        for topic in answer["responses"]
        for partition in topic["partitions"]
    ]
    return asked._replace(named={**asked.named, **{key: asked.of(key) for key in answered}})


def tell_next(answer: Value, asked: Asked, following: Asked) -> None:
    """Put the offset behind the size of the records, in the answer to a Fetch that asked this. following: the next."""
    for topic in answer["responses"]:
        names = topic_key(topic)
        for partition in topic["partitions"]:
            records = partition["records"]
            if not records or records[0] != UNSEEN or not records[1]:
                continue
            key = (*names, partition["partition_index"])
            began, then = asked.of(key)[0], following.named.get(key, (None, None))[0]
            if began is not None and then is not None and then > began:
                partition["records"] = (*records, then)
