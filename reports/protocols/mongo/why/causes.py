"""Which command of MongoDB is asked about: the slowest of a client's. In: client, command, collection. Out: its row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wirewitness.analyser.base.near_names import NearNames
from wirewitness.analyser.base.times import ms_text
from wirewitness.analyser.base.words import count, printable
from wirewitness.analyser.tables.queries import IS_TIMED, literal
from wirewitness.reports.base.why.asking import Asking, name

_OF_CLIENT = "{client} in (app_name, client_address, client_address || ':' || client_port)"
_SLOWEST = """
    with own as (
        select *, count(*) over () as commands, median(latency_ms) over () as usual_ms,
               count(*) over (partition by shape_id) as of_shape,
               median(latency_ms) over (partition by shape_id) as shape_ms
        from mongo_commands
        where {of} and command = {command} and {collection} and {timed})
    select * from own order by latency_ms desc, ts limit 1"""
# Of those that failed or got no reply: the first of the kind that came most often.
_FAILED = """
    with own as (
        select *, count(*) over () as commands, null::double as usual_ms, 0 as of_shape, null::double as shape_ms,
               coalesce(error_name, error_code::text, status) as kind
        from mongo_commands
        where {of} and command = {command} and {collection} and awaitable is not true)
    select *, count(*) over (partition by kind) as failed from own where status in ('error', 'unanswered')
    order by failed desc, ts limit 1"""
_KNOWN = """
    select distinct coalesce(app_name, client_address) as client, command from mongo_commands
    where command is not null order by client, command limit 200"""
_SHOWN = 6


def slowest(ask: Asking, client: str, command: str, collection: str | None = None) -> dict[str, Any] | None:
    """The slowest of these commands, with how many there are (`commands`, `of_shape`) and their medians."""
    return ask.one(_filled(_SLOWEST, client, command, collection))


def commonest_failure(ask: Asking, client: str, command: str, collection: str | None = None) -> dict[str, Any] | None:
    """The first of the failures of these commands that came most often (`failed`, of `commands`)."""
    return ask.one(_filled(_FAILED, client, command, collection))


def _filled(query: str, client: str, command: str, collection: str | None) -> str:
    place = "true" if collection is None else f"{literal(collection)} in (collection, database || '.' || collection)"
    of = _OF_CLIENT.format(client=literal(client))
    return query.format(of=of, command=literal(command), collection=place, timed=IS_TIMED)


def command_words(found: Mapping[str, Any]) -> str:
    """What it asked, in words for a verdict."""
    place = ".".join(name(part) for part in (found["database"], found["collection"]) if part)
    returned = found["documents_returned"]
    got = f", {count(returned, 'document')} came back" if returned else ""
    return f"it asked {place or 'the server'}{got}"


def others(found: Mapping[str, Any]) -> str:
    """How it is beside others."""
    if found.get("failed"):
        what = "got no reply" if found["kind"] == "unanswered" else f"ended with {name(found['kind'])}"
        return f"{found['failed']:,} of {count(found['commands'], 'command')} {what}; this is the first of them"
    if found["commands"] == 1:
        return "the only command of that name of this client"
    told = f"the slowest of {count(found['commands'], 'command')}, whose median is {ms_text(found['usual_ms'])}"
    if found["shape_id"] is not None and found["of_shape"] < found["commands"]:
        told += f"; of its shape {count(found['of_shape'], 'command')}, median {ms_text(found['shape_ms'])}"
    return told


def no_command(ask: Asking, said: Sequence[str]) -> str:
    """What is there instead."""
    known = [f"{name(one['client'])} {name(one['command'])}" for one in ask.rows(_KNOWN)]
    asked = printable(" ".join(said[:2]), 120)
    near = NearNames().near(asked, known, _SHOWN, 0.5)
    hint = f"; near it: {', '.join(near)}" if near else f"; there are {', '.join(known[:_SHOWN])}" if known else ""
    return f"no command with a reply is called '{asked}'{hint}"
