"""What runs of reading are, row by row: what `kafka_fetch_ranges` must say of small tables.

In: plain rows of the Kafka tables, as for `tests.support.rows`. Out: plain rows of the table. It is written from what
the table's columns mean, and looks at every row for every question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tests.support.run_jumps import jump_columns

Row = dict[str, Any]
Tables = Mapping[str, Sequence[Row]]
Found = dict[str, Any] | None

_TEN_SECONDS = 10_000_000_000


def given(*values: Any) -> Any:
    """The first that is not null."""
    return next((value for value in values if value is not None), None)


def expected_runs(tables: Tables) -> list[Row]:
    """All rows of the table, in any order."""
    return _Capture(tables).rows()


def _place(row: Row) -> tuple[Any, ...]:
    return given(row.get("cluster_id"), ""), given(row.get("topic"), row.get("topic_id"), ""), row["partition"]


def _part(row: Row) -> tuple[Any, ...]:
    return *_place(row), given(row.get("group_id"), "")


def _client(row: Row) -> tuple[str, str]:
    return given(row.get("client_address"), ""), given(row.get("client_id"), "")


def _answered(row: Row) -> int:
    return int(given(row.get("ts_response"), row["ts"]))


def _last(rows: Iterable[Row], at: int) -> Found:
    """The last of rows up to a time; of one time the last in their order."""
    before = [row for row in rows if row["at"] <= at]
    return max(enumerate(before), key=lambda found: (found[1]["at"], found[0]))[1] if before else None


def _position(row: Row) -> int | None:
    if row.get("next_offset") is not None:
        return max(row["next_offset"], given(row.get("fetch_offset"), 0))
    empty = row.get("ts_response") is not None and not row.get("records_bytes")
    return row.get("fetch_offset") if empty else None


def _in_order(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["ts"], row.get("fetch_offset") is None, row.get("fetch_offset") or 0))


def _begins(row: Row, before: Row | None) -> bool:
    if before is None or row["flow_id"] != before["flow_id"] or row.get("topic_id") != before.get("topic_id"):
        return True
    led_to, asked = _position(before), row.get("fetch_offset")
    if asked is None:
        return False
    if led_to is not None:
        return bool(asked != led_to)
    return before.get("fetch_offset") is not None and asked < before["fetch_offset"]


def _why(row: Row, before: Row | None) -> str:
    if before is None:
        return "first"
    if row.get("topic_id") != before.get("topic_id"):
        return "topic id"
    return "offset" if row.get("fetch_offset") != _position(before) else "connection"


def _most(values: Iterable[Any], choose: Callable[..., Any] = max) -> Any:
    known = [value for value in values if value is not None]
    return choose(known) if known else None


class _Capture:
    def __init__(self, tables: Tables) -> None:
        self._tables = {name: [*rows] for name, rows in tables.items()}
        self._fetches = [
            row
            for row in self._of("kafka_fetch_partitions")
            if row.get("group_id") is not None and given(row.get("replica_id"), -1) < 0
        ]
        self._readers = {(_part(row), _client(row)) for row in self._fetches}
        self._flows = {row["flow_id"]: row for row in self._of("flows")}
        self._commits = self._effective_commits()
        self._answers = [
            {"at": row["ts"], "part": _part(row), "client": _client(row), "offset": row["committed_offset"]}
            for row in self._of("kafka_offset_fetches")
            if not row.get("error_code") and row.get("committed_offset") is not None
        ]
        self._runs = [run for reader in self._readers for run in self._runs_of(*reader)]
        self._gaps = self._where_something_is_missing()

    def _of(self, table: str) -> list[Row]:
        return self._tables.get(table, [])

    def _runs_of(self, part: tuple[Any, ...], client: tuple[str, str]) -> list[Row]:
        own = [row for row in self._fetches if _part(row) == part and _client(row) == client]
        runs: list[Row] = []
        before = None
        for row in _in_order(row for row in own if not row.get("error_code")):
            if _begins(row, before):
                together = [other for other in own if other["ts"] == row["ts"]]
                runs.append({"part": part, "client": client, "before": before, "fetches": [], "together": together})
            runs[-1]["fetches"].append(row)
            before = row
        return runs

    def rows(self) -> list[Row]:
        return [self._row(run) for run in self._runs]

    def _row(self, run: Row) -> Row:
        fetches, before, part = run["fetches"], run["before"], run["part"]
        first = fetches[0]
        at, since = first["ts"], before["ts"] if before else 0
        lowest = {
            name: _most((row.get(name) for row in run["together"]), min)
            for name in ("exchange_id", "topic_id", "flow_id", "file", "request_packet")
        }
        asked = self._since(since, _last(self._own_answers(run), at))
        stored = _last(self._stored(part), asked["at"] - 1 if asked else at)
        change = _last(self._changes(part), at)
        if change and change["at"] <= (stored["at"] if stored else 0):
            change = None
        refused = self._since(since, _last(self._refused(run), at))
        listed = self._since(since, _last(self._listed(run), at))
        reported = self._reported(run)
        given_it = [one for one in reported if refused and one["offset"] == refused["offset"]]
        given_it = self._since(since, _last(given_it, refused["at"])) if refused else None
        epoch_ends = [one for one in reported if one["api"] == "OffsetForLeaderEpoch"]
        epoch_end = self._since(since, _last(epoch_ends, at))
        end, earlier, transactional = self._log_end(part[:3])
        gaps = sorted(gap for address, gap in self._gaps if address == run["client"][0])
        commit = stored["row"] if stored and stored["row"] else {}
        made = {
            "ts": at, "ts_last": fetches[-1]["ts"], **lowest,
            "cluster_id": part[0] or None, "group_id": part[3] or None, "topic": part[1] or None, "partition": part[2],
            "client_id": run["client"][1] or None, "client_address": run["client"][0] or None,
            "member_id": self._member(run, at),
            "first_offset": first.get("fetch_offset"), "next_offset": _most(map(_position, fetches)),
            "fetches": len(fetches),
            "records_count": _most((row.get("records_count") for row in fetches), sum),
            "log_start_offset": first.get("log_start_offset"),
            "log_end_offset": _most(row.get("high_watermark") for row in fetches),
            "started_by": _why(first, before),
            "ts_before": before["ts"] if before else None,
            "fetch_offset_before": before.get("fetch_offset") if before else None,
            "next_offset_before": _position(before) if before else None,
            "group_offset_before": self._group_position(part, first),
            "ts_stored": stored["at"] if stored else None, "stored_offset": stored["offset"] if stored else None,
            "stored_client_id": _client(commit)[1] if commit else None,
            "stored_client_address": _client(commit)[0] if commit else None,
            "stored_member_id": commit.get("member_id") or None, "stored_exchange_id": commit.get("exchange_id"),
            "ts_change": change["at"] if change else None, "change": change["change"] if change else None,
            "change_offset": change["offset"] if change else None,
            "change_client_id": _client(change["row"])[1] or None if change else None,
            "change_client_address": _client(change["row"])[0] or None if change else None,
            "change_exchange_id": change["row"].get("exchange_id") if change else None,
            "ts_answered": asked["at"] if asked else None, "answered_offset": asked["offset"] if asked else None,
            "ts_out_of_range": refused["at"] if refused else None,
            "out_of_range_offset": refused["offset"] if refused else None,
            "out_of_range_reported_by": given_it["api"] if given_it else None,
            "ts_epoch_end": epoch_end["at"] if epoch_end else None,
            "epoch_end_offset": epoch_end["offset"] if epoch_end else None,
            "ts_listed": listed["at"] if listed else None, "listed_timestamp": listed["asked"] if listed else None,
            "last_log_end_offset": end[1] if end else None, "ts_last_log_end": end[0] if end else None,
            "earlier_log_end_offset": earlier, "transactional": transactional,
            "client_gap_ts": _most(gap for gap in gaps if gap <= at), "ts_last_gap": _most(gaps),
        }  # fmt: skip
        return made | jump_columns(made)

    @staticmethod
    def _since(since: int, found: Found) -> Found:
        return found if found and found["at"] > since else None

    def _group_position(self, part: tuple[Any, ...], first: Row) -> int | None:
        accepted = _in_order(row for row in self._fetches if _part(row) == part and not row.get("error_code"))
        before = next(number for number, row in enumerate(accepted) if row is first)
        return _most(map(_position, accepted[:before]))

    def _effective_commits(self) -> list[Row]:
        """Each from when it counts; of a transaction the last one for a partition, from its end on."""
        accepted = [
            row
            for row in self._of("kafka_offset_commits")
            if row.get("error_code") == 0 and row["committed_offset"] >= 0
        ]
        found = [self._commit(row, _answered(row), True) for row in accepted if row["api"] == "OffsetCommit"]
        last: dict[tuple[Any, ...], Row] = {}
        for row in (row for row in accepted if row["api"] == "TxnOffsetCommit" and row["producer_id"] is not None):
            ends = self._ends_of(row)
            if not ends or not any(end.get("committed") for end in ends):
                continue
            key = (row["producer_id"], _answered(ends[0]), _part(row))
            if key not in last or self._broker_order(row) > self._broker_order(last[key]):
                last[key] = row
        return found + [self._commit(row, key[1], False) for key, row in last.items()]

    def _ends_of(self, sent: Row) -> list[Row]:
        """The next ends of its transaction, which came at one time."""
        ends = [
            row
            for row in self._of("kafka_transactions")
            if row["event"] == "end_txn"
            and row.get("error_code") == 0
            and given(row.get("cluster_id"), "") == given(sent.get("cluster_id"), "")
            and row["producer_id"] == sent["producer_id"]
            and _answered(row) >= _answered(sent)
        ]
        return [row for row in ends if _answered(row) == min(map(_answered, ends))]

    @staticmethod
    def _broker_order(row: Row) -> tuple[Any, ...]:
        name = row.get("exchange_id") or ""
        return _answered(row), len(name), name, row["committed_offset"]

    def _commit(self, row: Row, at: int, plain: bool) -> Row:
        moves = plain and not row.get("member_id") and (_part(row), _client(row)) not in self._readers
        return {"at": at, "part": _part(row), "offset": row["committed_offset"], "row": row, "moves": moves}

    def _own_answers(self, run: Row) -> list[Row]:
        return [one for one in self._answers if one["part"] == run["part"] and one["client"] == run["client"]]

    def _stored(self, part: tuple[Any, ...]) -> list[Row]:
        """Answers that tell what no commit does come before commits, which count where both have one time."""
        commits = [one for one in self._commits if one["part"] == part]
        told = []
        for answer in (one for one in self._answers if one["part"] == part and one["offset"] >= 0):
            last = _last(commits, answer["at"])
            if last is None or last["offset"] != answer["offset"]:
                told.append({**answer, "row": None})
        return told + [one for one in commits if not one["moves"]]

    def _changes(self, part: tuple[Any, ...]) -> list[Row]:
        resets = [{**one, "change": "reset"} for one in self._commits if one["part"] == part and one["moves"]]
        asked = []
        for row in self._of("kafka_admin_changes"):
            if row.get("error_code") != 0 or row.get("validate_only") or given(row.get("cluster_id"), "") != part[0]:
                continue
            for change, offset in _changes_of(row, part):
                asked.append({"at": _answered(row), "change": change, "offset": offset, "row": row})
        asked.sort(key=lambda one: (one["at"], one["row"]["exchange_id"], one["change"], given(one["offset"], 1 << 63)))
        return resets + asked

    def _refused(self, run: Row) -> list[Row]:
        own = [row for row in self._fetches if (_part(row), _client(row)) == (run["part"], run["client"])]
        refused = [row for row in own if row.get("error_code") == 1]
        return [{"at": row["ts"], "offset": row.get("fetch_offset")} for row in _in_order(refused)]

    def _listed(self, run: Row) -> list[Row]:
        return [
            {"at": row["ts"], "asked": row.get("timestamp")}
            for row in self._of("kafka_list_offsets")
            if not row.get("error_code")
            and row.get("offset") is not None
            and row["offset"] >= 0
            and row["offset"] == run["fetches"][0].get("fetch_offset")
            and (_place(row), _client(row)) == (run["part"][:3], run["client"])
        ]

    def _reported(self, run: Row) -> list[Row]:
        """Offsets that responses gave the reader, by their APIs."""
        return [
            {"at": row["ts"], "api": api, "offset": row[column]}
            for api, table, column in (
                ("ListOffsets", "kafka_list_offsets", "offset"),
                ("OffsetForLeaderEpoch", "kafka_leader_epochs", "end_offset"),
                ("OffsetFetch", "kafka_offset_fetches", "committed_offset"),
            )
            for row in self._of(table)
            if not row.get("error_code")
            and given(row.get(column), -1) >= 0
            and (_place(row), _client(row)) == (run["part"][:3], run["client"])
        ]

    def _member(self, run: Row, at: int) -> str | None:
        """The last one before, else the first one after; of one time as their names sort."""
        heard: dict[str, int] = {}
        events = [
            row
            for row in self._of("kafka_group_events")
            if row["event"] in ("join", "sync", "heartbeat", "consumer_heartbeat")
        ]
        for row in events + self._of("kafka_offset_commits"):
            same = given(row.get("cluster_id"), "") == run["part"][0] and row.get("group_id") == run["part"][3]
            if same and row.get("error_code") == 0 and row.get("member_id") and _client(row) == run["client"]:
                heard[row["member_id"]] = min(heard.get(row["member_id"], 1 << 63), _answered(row))
        before = [(heard_at, name) for name, heard_at in heard.items() if heard_at <= at]
        return max(before)[1] if before else min(((when, name) for name, when in heard.items()), default=(0, None))[1]

    def _log_end(self, place: tuple[Any, ...]) -> tuple[tuple[int, int] | None, int | None, bool | None]:
        """The last known end of all and when it was told, the one of ten seconds before, transactions."""
        ends = [row for row in self._of("kafka_log_ends") if _place(row) == place and row["log_end_offset"] is not None]
        last = max(ends, key=lambda row: row["ts"], default=None)
        at = max((given(row["ts_last"], row["ts"]) for row in ends), default=0)
        before = [row for row in ends if row["ts"] <= at - _TEN_SECONDS]
        earlier = max(before, key=lambda row: row["ts"], default=None)
        batches = [row for row in self._of("kafka_produce_batches") if _place(row) == place]
        return (
            (at, last["log_end_offset"]) if last else None,
            earlier["log_end_offset"] if earlier else None,
            _most((row.get("transactional") for row in batches if row.get("error_code") == 0), any),
        )

    def _where_something_is_missing(self) -> set[tuple[str, int]]:
        """Addresses of clients, and times: of losses, and of connections that began unseen."""
        found = set()
        for row in self._of("expert_infos"):
            flow = self._flows.get(row["flow_id"])
            lost = row.get("group") in ("tcp", "log") and row.get("code") == "gap" and row.get("ts") is not None
            if lost and flow and flow.get("client_address") is not None:
                found.add((flow["client_address"], row["ts"]))
        for run in self._runs:
            first, before = run["fetches"][0], run["before"]
            flow = self._flows.get(min(row["flow_id"] for row in run["together"]))
            if flow is None:
                continue
            other = before is not None and first["flow_id"] != before["flow_id"]
            unnumbered = flow.get("identified_by") == "request log" and flow.get("missing_requests") is None
            if unnumbered or (other and not flow["handshake_seen"] and flow["ts_first"] > before["ts"]):
                found.add((run["client"][0], first["ts"]))
        return found


def _changes_of(row: Row, part: tuple[Any, ...]) -> list[tuple[str, int | None]]:
    """What a change that somebody asked for means to a partition of a group."""
    _, topic, partition, group = part
    change, name, kind = row["change"], given(row.get("resource_name"), ""), row["resource_type"]
    if kind == "group" and name == group:
        if change == "delete":
            return [("group deleted", None)]
        _, _, rest = change.partition("delete offsets of ")
        of_topic, _, numbers = rest.rpartition(" ")
        named = of_topic == topic and str(partition) in numbers.split(",")
        return [("offsets deleted", None)] if rest and named else []
    if kind == "topic" and name == topic:
        if change == "delete" or change.startswith("delete topic_id="):
            return [("topic deleted", None)]
        if change.startswith("partitions="):
            return [("partitions added", None)] if int(change.removeprefix("partitions=")) > partition else []
        cuts = [cut.split("<") for cut in change.removeprefix("delete records ").split(",") if "<" in cut]
        return [("records deleted", int(offset)) for number, offset in cuts if int(number) == partition]
    return []
