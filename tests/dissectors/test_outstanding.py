"""Requests that wait: which go and when, and responses that were read before what they answer."""

from dataclasses import replace

import pytest

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, Frame
from wirewitness.dissectors.core.outstanding import Outstanding
from wirewitness.dissectors.core.unmatched_responses import EARLY_NS

LIMITS = replace(Limits(), max_outstanding=3, max_unheard=2, max_early=2)


class Told:
    """What a decoder would be told, in order."""

    def __init__(self) -> None:
        self.all: list[tuple[str, object]] = []

    def unanswered(self, request: str, out: None) -> None:
        self.all.append(("unanswered", request))

    def given_up(self, request: str, out: None) -> None:
        self.all.append(("given up", request))

    def respond(self, frame: Frame, out: None) -> None:
        self.all.append(("respond", frame.stream_offset))

    def orphan(self, frame: Frame, out: None) -> None:
        self.all.append(("orphan", frame.stream_offset))

    def limit(self, frame: Frame, out: None, code: str) -> None:
        self.all.append(("limit", code))


class Flow:
    """Requests are named by their id; responses by the stream offset, ten times the id."""

    def __init__(self, heard: bool = True) -> None:
        self.told = Told()
        self.outstanding: Outstanding[str, None] = Outstanding(LIMITS)
        self.outstanding.heard = heard

    def ask(self, *ids: int, ts_ns: int = 0) -> "Flow":
        for key in ids:
            self.outstanding.wait(key, f"request {key}", frame(key, ts_ns), self.told, None)
        return self

    def early(self, *ids: int, ts_ns: int = 0) -> "Flow":
        for key in ids:
            self.outstanding.hold_early(key, frame(10 * key, ts_ns), self.told, None)
        return self


def frame(offset: int, ts_ns: int = 0) -> Frame:
    return Frame(1, CLIENT_TO_SERVER, b"data", 0, 4, offset, 1, 1, ts_ns, True)


def test_an_id_that_is_used_again_ends_the_older_request() -> None:
    flow = Flow().ask(1, 2, 1)
    assert flow.told.all == [("unanswered", "request 1")]
    assert list(flow.outstanding.requests) == [2, 1]


@pytest.mark.parametrize(
    ("heard", "asked", "what", "code"),
    [(True, 4, "given up", "outstanding_requests"), (False, 3, "unanswered", "unheard_requests")],
)
def test_the_oldest_goes_when_too_many_wait(heard: bool, asked: int, what: str, code: str) -> None:
    """Its answer may come, where any does."""
    flow = Flow(heard).ask(*range(asked))
    assert flow.told.all == [(what, "request 0"), ("limit", code)]


def test_what_is_let_go_is_given_up_and_not_unanswered() -> None:
    flow = Flow().early(9).ask(1, 2)
    flow.outstanding.let_go(flow.told, None)
    assert flow.told.all == [("orphan", 90), ("given up", "request 1"), ("given up", "request 2")]
    flow.outstanding.finish(flow.told, None)
    assert len(flow.told.all) == 3


def test_a_response_in_order_ends_the_requests_before_it_where_bytes_are_missing() -> None:
    flow = Flow(heard=False).ask(1, 2)
    flow.outstanding.lost = True
    flow.outstanding.take_in_order(2, flow.told, None)
    assert flow.told.all == [("unanswered", "request 1")]
    assert (flow.outstanding.requests, flow.outstanding.heard) == ({}, True)
    assert flow.outstanding.overtaken(1) is None


def test_where_nothing_is_missing_a_request_that_was_overtaken_waits_apart() -> None:
    flow = Flow().ask(1, 2)
    flow.outstanding.take_in_order(2, flow.told, None)
    assert (flow.told.all, flow.outstanding.requests) == ([], {})
    assert (flow.outstanding.overtaken(1), flow.outstanding.overtaken(2)) == ("request 1", None)
    flow.outstanding.take_overtaken(1)
    flow.outstanding.finish(flow.told, None)
    assert flow.told.all == []


def test_requests_that_were_overtaken_are_bounded_and_go_with_their_id_and_at_the_end() -> None:
    flow = Flow()
    for key in (1, 3, 5):
        flow.ask(key, key + 1)
        flow.outstanding.take_in_order(key + 1, flow.told, None)
    assert flow.told.all == [("given up", "request 1")], "two may wait"
    flow.ask(3).outstanding.finish(flow.told, None)
    assert flow.told.all[1:] == [("unanswered", f"request {key}") for key in (3, 5, 3)]


@pytest.mark.parametrize(("later_ns", "told"), [(EARLY_NS, "respond"), (EARLY_NS + 1, "orphan")])
def test_a_response_that_was_read_early_answers_a_request_of_its_time(later_ns: int, told: str) -> None:
    assert Flow().early(7).ask(7, ts_ns=later_ns).told.all == [(told, 70)]


def test_early_responses_are_bounded_and_one_id_holds_one() -> None:
    assert Flow().early(1, 2, 1).told.all == [("orphan", 10)]
    assert Flow().early(1, 2, 3).told.all == [("limit", "early_responses"), ("orphan", 10)]


def test_at_the_end_responses_are_orphans_first_then_requests_stay_unanswered() -> None:
    flow = Flow().early(5).ask(1, 2)
    flow.outstanding.finish(flow.told, None)
    assert flow.told.all == [("orphan", 50), ("unanswered", "request 1"), ("unanswered", "request 2")]
    assert not flow.outstanding.requests


def test_responses_wait_as_long_as_a_gap_in_what_was_asked_may_stand() -> None:
    """The bytes behind a gap wait for those that are missing, while the other side goes on: hundreds of responses."""
    flow = Flow()
    flow.outstanding = Outstanding(Limits())
    flow.outstanding.heard = True
    told = flow.early(*range(500)).ask(*range(500)).told.all
    assert told == [("respond", 10 * key) for key in range(500)]
