"""The table of findings beside a review. In: a source, a review. Out: all its rows, with what is known as columns."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from wirewitness.analyser.tables.tables import arrow_schema
from wirewitness.reports.base.questions.causes import findings
from wirewitness.reports.base.questions.reviews import Judged, Review, Seen
from wirewitness.reports.base.questions.source import Source

# reviewed: looked at, and not grown. review_grew: what has grown since; null where nothing has, or nobody looked at it.
REVIEW_FIELDS = (
    pa.field("reviewed", pa.bool_()),
    pa.field("review_note", pa.string()),
    pa.field("review_by", pa.string()),
    pa.field("review_date", pa.string()),
    pa.field("review_grew", pa.string()),
)
REVIEWED_COLUMNS = [*arrow_schema("findings").names, *(field.name for field in REVIEW_FIELDS)]


def reviewed_rows(source: Source, review: Review, judged: Judged | None = None) -> Iterator[pa.RecordBatch]:
    """Rows of `findings` in their order, with the columns REVIEW_FIELDS. judged: where it is known already."""
    seen = (judged or review.judge(findings(source))).seen
    for batch in source.batches("findings"):
        known = [seen.get(finding_id) for finding_id in batch.column("finding_id").to_pylist()]
        values = zip(*map(_values, known), strict=True) if known else ([] for _ in REVIEW_FIELDS)
        added = [pa.array(list(column), field.type) for column, field in zip(values, REVIEW_FIELDS, strict=True)]
        yield pa.RecordBatch.from_arrays(
            [*batch.columns, *added], schema=pa.schema([*batch.schema, *REVIEW_FIELDS], metadata=batch.schema.metadata)
        )


def _values(known: Seen | None) -> tuple[bool | str | None, ...]:
    if known is None:
        return False, None, None, None, None
    entry = known.entry
    return known.grew is None, entry.note, entry.by, entry.date.isoformat(), known.grew
