"""MongoDB beside tshark: what is compared, how tshark's trees are read, and what it cannot do."""

from __future__ import annotations

from typing import Any

from wirewitness.dissectors.mongo.opcodes import OP_COMPRESSED, OP_MSG, OP_QUERY, OPCODES
from wirewitness.reports.report.tshark.case import Case, Limit
from wirewitness.reports.report.tshark.compared import Compared, Row
from wirewitness.reports.report.tshark.message import HEAD, Theirs
from wirewitness.reports.report.tshark.trees import Packet, Pairs, inside, made

_COMPRESSORS = {0: "noop", 1: "snappy", 2: "zlib", 3: "zstd"}


def _read(packet: Packet, tree: Pairs) -> Theirs | None:
    head = dict(tree)
    if "mongo.request_id" not in head or "mongo.opcode" not in head:
        return None
    number, answers = _signed(head["mongo.request_id"]), _signed(head["mongo.response_to"])
    length, opcode = int(head["mongo.message_length"]), int(head["mongo.opcode"])
    values: dict[str, Any] = {"number": number, "length_bytes": length, "compressor": "none"}
    if opcode == OP_COMPRESSED:
        packed = dict(head.get("mongo.compression") or [])
        opcode = int(packed.get("mongo.compression.original_opcode", opcode))
        compressor = int(packed.get("mongo.compression.compressor", -1))
        values["compressor"] = _COMPRESSORS.get(compressor, str(compressor))
    version = OPCODES.get(opcode, str(opcode))
    values["version"] = version
    role = "response" if answers or version == "OP_REPLY" else "request"
    if answers:
        values["request"] = answers
    command = None
    flags = dict(head.get("mongo.msg.flags_tree") or [])
    if flags.get("mongo.msg.flags.checksumpresent") in {"1", "True"}:
        values["checksum_present"] = True
    if opcode == OP_MSG:
        body = _elements(inside(tree, "mongo.msg.sections.section", "mongo.msg.sections.section.body"))
        if role == "request":
            command = body[0][0] if body else None
            values |= {"operation": command, "database": _bson_text(body, "$db")}
        else:
            values["ok"] = _bson_ok(body)
    elif opcode == OP_QUERY:
        names = dict(head.get("mongo.full_collection_name_tree") or [])
        values["database"] = names.get("mongo.database_name")
        query = _elements(inside(tree, "mongo.query"))
        if names.get("mongo.collection_name") == "$cmd" and query and not query[0][0].startswith("$"):
            command = values["operation"] = query[0][0]
    kinds = (command, role, version)
    known = {name: value for name, value in values.items() if value is not None}
    return made(packet, "mongo", length, number, kinds, known, tree)


def _elements(document: Pairs) -> list[tuple[str, Pairs]]:
    """Names and trees of a document's own elements."""
    elements: list[tuple[str, Pairs]] = []
    name = ""
    for label, value in inside(document, "mongo.elements"):
        if label == "mongo.element.name":
            name = value
            elements.append((name, []))
        elif label == "mongo.element.name_tree" and elements:
            elements[-1] = (name, value)
    return elements


def _bson_text(elements: list[tuple[str, Pairs]], name: str) -> str | None:
    tree = next((dict(tree) for key, tree in elements if key == name), {})
    return tree.get("mongo.element.value.string")


def _bson_ok(elements: list[tuple[str, Pairs]]) -> bool | None:
    tree = next((dict(tree) for key, tree in elements if key == "ok"), {})
    numbers = [value for name, value in tree.items() if name.startswith("mongo.element.value.")]
    return bool(float(numbers[0])) if numbers else None


def _signed(text: str) -> int:
    """A 32-bit number that tshark shows as unsigned hexadecimal."""
    return (int(text, 0) ^ 1 << 31) - (1 << 31)


def _values(row: Row) -> dict[str, Any]:
    values: dict[str, Any] = {"version": row["version"]}
    if row["role"] == "request":
        values |= {
            "operation": row["operation"],
            "database": row["database"],
            "compressor": row["compressor"] or "none",
        }
    elif row["answers"]:
        values |= {"request": row["request_number"], "ok": row["ok"]}
        values["compressor"] = row["response_compressor"] or "none"
    return values


def _checksum(case: Case) -> bool:
    marks = ("Malformed", "Unknown section type", "Bogus Mongo message section size", "Unknown Data")
    remarks = case.theirs.remarks if case.theirs else ()
    gave_up = case.theirs is not None and (case.theirs.malformed or any(r.startswith(marks) for r in remarks))
    return gave_up and bool(case.theirs and case.theirs.values.get("checksum_present")) and not case.differing & HEAD


_LIMITS = (
    Limit(
        "op_msg_checksum", "mongo", "tshark",
        "it takes the checksum behind an OP_MSG for another section",
        "4.0.17", "packet-mongo.c, dissect_mongo_op_msg; later versions stop before the checksum", _checksum,
    ),
    Limit(
        "zstd", "mongo", "tshark",
        "it does not decompress this; what the message holds is not seen",
        "4.0.17: zstd", "packet-mongo.c, dissect_mongo_op_compressed; later versions know zstd",
        lambda case: bool(
            case.theirs and any(r.startswith("Unsupported compression") for r in case.theirs.remarks)
        ) and not case.differing,
    ),
)  # fmt: skip

MONGO = Compared(
    name="mongo",
    layer="mongo",
    read=_read,
    tables=("mongo_commands",),
    columns=("k.database", "k.ok", "k.compressor", "k.response_compressor"),
    joins="left join mongo_commands k on k.exchange_id = coalesce(r.exchange_id, a.exchange_id)",
    values=_values,
    hidden=(
        r"mongo\.(element\.(value|length)|message|commandargs|commandreply|metadata|outputdocs|unknown"
        r"|compression\.compressed_data).*"
    ),
    limits=_LIMITS,
)
