"""Spans of MongoDB's exchanges."""

from __future__ import annotations

from typing import Any

from opentelemetry.semconv._incubating.attributes import db_attributes as db_more
from opentelemetry.semconv.attributes import db_attributes as db

from wirewitness.reports.base.otel.span_attributes import OWN, Row, Told


def _attributes(row: Row) -> dict[str, Any]:
    code = row["error_code"]
    return {
        db.DB_SYSTEM_NAME: db_more.DbSystemNameValues.MONGODB.value,
        db.DB_OPERATION_NAME: row["operation"],
        db.DB_NAMESPACE: row.get("database"),
        db.DB_COLLECTION_NAME: row.get("collection"),
        db.DB_QUERY_TEXT: row.get("query_shape"),
        db.DB_RESPONSE_STATUS_CODE: str(code) if code else None,
        db_more.DB_RESPONSE_RETURNED_ROWS: row.get("documents_returned"),
        f"{OWN}mongo.opcode": row["version"],
    }


MONGO = Told(
    name="mongo",
    attributes=_attributes,
    tables=("mongo_commands",),
    joins="left join mongo_commands c using (exchange_id)",
    columns={
        "database": "c.database",
        "collection": "c.collection",
        "query_shape": "c.query_shape",
        "documents_returned": "c.documents_returned",
    },
)
