"""What `kafka_fetch_ranges` must say of one run that began elsewhere, by the meaning of its columns.

In: a row of the table as a dict, times as Unix ns. Out: its columns `jump_cause` to `own_move_records`.
"""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
JUMP_COLUMNS = (
    "jump_cause", "expected_offset", "records_skipped", "records_again", "own_move", "own_move_records",
)  # fmt: skip
_LATEST, _EARLIEST, _NO_OFFSET = -1, -2, -1


def jump_columns(run: Row) -> Row:
    """Those columns of a run."""
    return dict(zip(JUMP_COLUMNS, (*_jump(run), *own_move(run)), strict=True))


def _jump(run: Row) -> tuple[str | None, int | None, int | None, int | None]:
    begins, expected, nothing = run["first_offset"], _expected(run), (None, None, None, None)
    seen = run["answered_offset"] is not None or run["ts_out_of_range"] is not None or _is_truncated(run)
    made_anew = run["started_by"] == "topic id" or run["change"] == "topic deleted"
    if begins is None or expected is None or not seen or made_anew:
        return nothing
    if begins in (expected, run["next_offset_before"]) or (run["stored_offset"] is None and begins < expected):
        return nothing
    skipped = max(begins - max(expected, run["group_offset_before"] or 0), 0)
    again = max(expected - begins, 0)
    if (not skipped and not again) or (skipped and _may_have_begun_before(run)):
        return nothing
    return _cause(run, expected), expected, skipped, again


def _is_truncated(run: Row) -> bool:
    before = run["fetch_offset_before"] if run["next_offset_before"] is None else run["next_offset_before"]
    end = run["epoch_end_offset"]
    return end is not None and before is not None and end < before and run["first_offset"] == end


def _may_have_begun_before(run: Row) -> bool:
    gap, told = run["ts_last_gap"], run["first_offset"] == run["answered_offset"] or run["ts_listed"] is not None
    return gap is not None and (run["ts_stored"] is None or gap >= run["ts_stored"]) and not told


def _expected(run: Row) -> int | None:
    stored: int | None = _stored(run)
    if stored is None and run["out_of_range_offset"] is not None and run["answered_offset"] != _NO_OFFSET:
        found = run["next_offset_before"] if run["answered_offset"] is None else run["answered_offset"]
        return None if found is None else int(found)
    if stored is not None or run["answered_offset"] != _NO_OFFSET or run["listed_timestamp"] != _LATEST:
        return stored
    if run["group_offset_before"] is not None:
        return int(run["group_offset_before"])
    start = run["log_start_offset"]
    return start if run["change"] == "partitions added" and start is not None and start >= 0 else None


def _stored(run: Row) -> int | None:
    stored, answered = run["stored_offset"], run["answered_offset"]
    if stored is None or answered is None or answered <= stored:
        return stored
    return stored if run["change"] == "reset" and answered == run["change_offset"] else answered


def _cause(run: Row, expected: int) -> str:
    answered, refused, change = run["answered_offset"], run["out_of_range_offset"], run["change"]
    if _is_truncated(run):
        return "truncated"
    if refused is not None:
        return _cause_of_refusal(run, refused)
    if change == "reset" and run["change_offset"] == answered:
        return "reset"
    if run["stored_offset"] is None:
        return "partitions added" if run["group_offset_before"] is None else "never stored"
    if answered == _NO_OFFSET:
        return change if change in ("offsets deleted", "group deleted") else "offset gone"
    if answered is not None and answered < expected and answered == run["first_offset"]:
        return "older offset"
    return "seek" if run["listed_timestamp"] is None or run["listed_timestamp"] < 0 else "time"


def _cause_of_refusal(run: Row, refused: int) -> str:
    led_to = (run["stored_offset"], run["answered_offset"], run["next_offset_before"])
    if run["next_offset_before"] is not None and refused not in led_to and run["out_of_range_reported_by"] is None:
        return "asked beyond"
    if run["change"] == "records deleted":
        return "records deleted"
    start = run["log_start_offset"]
    if (start is None or start < 0) and run["listed_timestamp"] == _EARLIEST:
        start = run["first_offset"]
    return "records expired" if start is not None and refused < start else "log cut"


def own_move(run: Row) -> tuple[str | None, int | None]:
    """How it moved by itself, and the records between."""
    origin, target, asked = run["next_offset_before"], run["first_offset"], run["out_of_range_offset"]
    unknown = None in (origin, target) or run["answered_offset"] is not None or run["ts_last_gap"] is not None
    named = run["topic"] is not None and run["topic"] != run["topic_id"]
    if unknown or not named or run["started_by"] != "offset":
        return None, None
    reached, stored = max(origin, run["group_offset_before"] or 0), run["stored_offset"]
    if asked is not None:
        chosen = asked not in (origin, stored, run["fetch_offset_before"]) and run["out_of_range_reported_by"] is None
        return ("refused" if asked > origin and chosen else None), None
    if target > origin:
        return ("forward", target - reached) if target > reached and run["ts_listed"] is None else (None, None)
    if stored is None or any(run[name] is not None for name in ("change", "ts_epoch_end", "ts_listed")):
        return None, None
    before = run["fetch_offset_before"]
    if target < stored and before is not None and target < before:
        return "back", stored - target
    own = all(run[name] == run[f"stored_{name}"] for name in ("client_address", "client_id"))
    known = run["client_address"] is not None
    return ("ahead", target - stored) if stored < target < origin and own and known else (None, None)
