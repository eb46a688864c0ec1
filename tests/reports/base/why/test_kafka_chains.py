"""Chains of Kafka incidents say what whoever made the incident did, whom it hit, and when."""

from __future__ import annotations

import pytest

from tests.reports.base.why.chains import chains, check, culprit, fault_ns, kinds, link, opened, sample_facts, truth
from tests.support.shares import share
from wirewitness.reports.base.questions.causes import findings
from wirewitness.reports.base.why.asking import Asking
from wirewitness.reports.base.why.model import NoSubject
from wirewitness.reports.protocols.kafka.why.partition import standing
from wirewitness.reports.report.why.subjects import answer

SECOND_NS = 1_000_000_000
# What stood between the broker and a member that is gone, by what was done to it.
GONE = {
    "member_frozen-6": "stood_still",
    "link_down-2": "sent_again",
    "member_killed-5": "closed",
}


def partition_of(name: str) -> tuple[str, str, str]:
    """The first partition of the group that the incident is about."""
    group = truth(name)["affected"]["groups"][0]
    row = next(row for row in standing(Asking(opened(name))) if row["group_id"] == group)
    return group, row["topic"], str(row["partition"])


@pytest.mark.parametrize(("name", "last"), GONE.items())
def test_a_partition_that_changed_hands_leads_to_the_member_that_was_gone_and_what_stood(name: str, last: str) -> None:
    chain = chains(name, *partition_of(name))[0]
    assert ["stored_offset", "commit", "assigned", "rebalance", "membership", last] in kinds(chain)
    gone, stood = link(chain, "membership"), link(chain, last)
    assert culprit(name) in gone.what
    since_ns, _ = fault_ns(name)
    # Its last word came before the fault, by a heartbeat interval or so; what stood shows within the fault.
    assert since_ns - 4 * SECOND_NS <= gone.at_ns <= since_ns
    assert stood.until_ns is None or stood.until_ns >= since_ns
    if last == "closed":
        assert abs(stood.at_ns - since_ns) < SECOND_NS
    check(opened(name), chain)


@pytest.mark.parametrize("name", GONE)
def test_findings_about_the_member_lead_to_the_same(name: str) -> None:
    found = [one for one in findings(opened(name)) if one.code in ("KAF111", "KAF126", "KAF127")]
    told = [chains(name, one.finding_id)[0] for one in found if culprit(name).split("@")[0] in one.sentence]
    assert told
    assert any(path[-1] == GONE[name] for chain in told for path in kinds(chain))


def test_a_broker_that_stood_still_is_what_put_its_members_out() -> None:
    name = "broker_frozen-2"
    chain = chains(name, *partition_of(name))[0]
    assert kinds(chain)[0][-2:] == ["membership", "server_stood_still"]
    stood = link(chain, "server_stood_still")
    assert truth(name)["culprit"]["server"] in stood.what
    since_ns, until_ns = fault_ns(name)
    assert abs(stood.at_ns - since_ns) < SECOND_NS
    assert abs(stood.until_ns - until_ns) < SECOND_NS


STOPPED = {
    "commits_stop-1": "reads_on",
    "handler_stuck-1": "poll_pause",
}


@pytest.mark.parametrize(("name", "last"), STOPPED.items())
def test_a_partition_without_commits_says_what_its_reader_does_instead(name: str, last: str) -> None:
    chain = chains(name, *partition_of(name))[0]
    assert kinds(chain)[0] == ["stored_offset", "no_commit", last]
    assert culprit(name) in link(chain, last).what
    assert link(chain, "no_commit").at_ns >= fault_ns(name)[0]
    check(opened(name), chain)


def test_a_poison_loop_is_a_pause_between_two_polls_as_long_as_it_may_be() -> None:
    name = "poison_loop-3"
    told = truth(name)["culprit"]
    chain = chains(name, told["group"], told["topic"], str(told["partition"]))[0]
    assert kinds(chain)[0] == ["stored_offset", "no_commit", "membership", "poll_pause"]
    pause = link(chain, "poll_pause")
    assert culprit(name) in pause.what
    assert pause.sure == "high"
    assert "max.poll.interval.ms" in pause.assumption
    check(opened(name), chain)


def test_a_group_that_never_commits_has_a_reader_and_no_commit() -> None:
    name = "never_commits-5"
    chain = chains(name, *partition_of(name))[0]
    assert kinds(chain) == [["stored_offset", "no_commit"]]
    assert culprit(name) in link(chain, "no_commit").what
    assert link(chain, "no_commit").sure == "medium"


def test_records_behind_an_open_transaction_are_held_back_by_its_producer() -> None:
    name = "hanging_transaction-2"
    chain = chains(name, *partition_of(name))[0]
    assert kinds(chain)[0] == ["stored_offset", "no_commit", "held_back"]
    held = link(chain, "held_back")
    assert culprit(name) in held.what
    assert truth(name)["culprit"]["transactional_id"] in held.what


def test_an_operator_who_set_offsets_is_named_while_they_stand() -> None:
    name = "offsets_reset_back-2"
    told = truth(name)["culprit"]
    chain = chains(name, told["group"], told["topic"], "0", at_ns=fault_ns(name)[1])[0]
    assert kinds(chain)[-1] == ["stored_offset", "commit", "tool"]
    assert culprit(name) in link(chain, "commit").what
    assert culprit(name) in link(chain, "tool").what


def test_an_operator_who_deleted_offsets_is_named_while_none_is_stored() -> None:
    name = "offsets_deleted-2"
    told = truth(name)["culprit"]
    chain = chains(name, told["group"], told["topic"], "0", at_ns=fault_ns(name)[1])[0]
    assert chain.verdict.startswith("no committed offset of prod-refunds-0 is known")
    assert ["stored_offset", "admin"] in kinds(chain)
    assert culprit(name) in link(chain, "admin").what


def test_a_stale_commit_leads_to_the_rebalance_that_took_the_partition_away() -> None:
    group = next(g for g in sample_facts("kafka_stale_commit")["group"] if g["group"] == "payments-ledger")
    affected = next(one for one in group["affected"] if one["last_offset"] < one["highest_offset"])
    partition = affected["partition"]
    stale = {f"{one['client_id']}@{one['address']}" for one in group["stale_committer"]}
    chain = chains("kafka_stale_commit", "payments", str(partition))[0]
    assert kinds(chain) == [["stored_offset", "commit", "lost_assignment", "rebalance", "started"]]
    commit, lost = link(chain, "commit"), link(chain, "lost_assignment")
    assert any(
        f"{one} stored {affected['last_offset']} over {affected['highest_offset']}" in commit.what for one in stale
    )
    # Whoever had it in one generation, and somebody else in the next, lost it there.
    had = {one["generation"]: one["client_id"] for one in group["assignment"] if partition in one["partitions"]}
    first = next(generation for generation, client in had.items() if commit.what.startswith(client))
    next_owner = had[first + 1]
    assert f"(generation {first}), until generation {first + 1} gave it to {next_owner}@" in lost.what
    assert f"generation {first} to generation {first + 1}" in link(chain, "rebalance").what
    assert link(chain, "started").what.startswith(f"{next_owner}@")
    check(opened("kafka_stale_commit"), chain)


def test_commits_of_one_member_that_overtake_each_other_lead_to_the_one_that_was_first() -> None:
    group = next(g for g in sample_facts("kafka_stale_commit")["group"] if g["group"] == "orders-billing")
    stands = [one for one in group["affected"] if one["last_offset"] < one["highest_offset"]]
    assert stands
    for one in stands:
        chain = chains("kafka_stale_commit", "orders", str(one["partition"]))[0]
        assert ["stored_offset", "commit", "overtaken"] in kinds(chain)
        assert f"stored {one['last_offset']} over {one['highest_offset']}" in link(chain, "commit").what


def test_a_refused_commit_leads_to_the_generation_that_ended() -> None:
    group = sample_facts("kafka_fenced_commit")["group"][0]
    found = next(one for one in findings(opened("kafka_fenced_commit")) if one.code == "KAF105")
    chain = chains("kafka_fenced_commit", found.finding_id)[0]
    assert kinds(chain) == [["finding", "refused_commit", "rebalance", "started"]]
    refused = group["refused_committer"][0]
    assert f"{refused['client_id']}@{refused['address']} with ILLEGAL_GENERATION" in link(chain, "refused_commit").what
    check(opened("kafka_fenced_commit"), chain)


@pytest.mark.parametrize(
    "name",
    share(["clean_stop-1", "rolling_restart-10", "rolling_restart-13", "static_restart-3"], ["rolling_restart-13"]),
)
def test_of_healthy_partitions_nothing_is_said_to_be_wrong(name: str) -> None:
    group = next(iter(truth(name)["member_ids"]))
    committed = [one for one in standing(Asking(opened(name))) if None not in (one["committed_offset"], one["lag"])]
    own = [one for one in committed if one["group_id"] == group][:2]
    others = [one for one in committed if one["group_id"] != group][:3]
    assert own
    for row in own + others:
        chain = chains(name, row["group_id"], row["topic"], str(row["partition"]))[0]
        check(opened(name), chain)
        accusing = {"no_commit", "refused_commit", "overtaken", "slower", "reads_on", "poll_pause", "stood_still"}
        assert not accusing & {kind for path in kinds(chain) for kind in path}
        assert chain.healthy, chain.verdict
        assert chain.verdict.startswith("nothing is wrong: ")


def test_of_several_groups_each_is_told_the_worst_first() -> None:
    every = standing(Asking(opened("kafka_healthy")))
    topic, partition = max(
        {(row["topic"], row["partition"]) for row in every},
        key=lambda spot: len([row for row in every if (row["topic"], row["partition"]) == spot]),
    )
    groups = {row["group_id"] for row in every if (row["topic"], row["partition"]) == (topic, partition)}
    told = chains("kafka_healthy", topic, str(partition))
    assert len(told) == min(len(groups), 5) > 1
    assert [chain.healthy for chain in told] == sorted(chain.healthy for chain in told)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("paymnts", "4"), "near it: payments-4 (group payments-ledger)"),
        (("0123456789abcdef",), "there is no finding 0123456789abcdef here"),
        (("payments",), "nothing here is called 'payments'"),
        (("pay\x1b[31mments\u202e", "4"), r"\x1b[31m"),
        (("' or 1=1 --", "4"), "nothing here is called"),
        (("payments", "99999999999999999999"), "nothing here is called"),
        (("x" * 5000, "4"), "…"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is_near(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(NoSubject) as refused:
        answer(Asking(opened("kafka_stale_commit")), words)
    assert said in str(refused.value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize(
    "words",
    [
        ("payments", "4"), ("payments 4",), ("payments-4",), ("payments-ledger", "payments", "4"),
        ("payments-ledger payments-4",), ("payments-ledger", "payments-4"), ("4", "payments"),
        ("payments", "4", "payments-ledger"), ("payments-4", "payments-ledger"), ("4", "payments-ledger", "payments"),
    ],
)  # fmt: skip
def test_a_partition_is_named_in_many_ways(words: tuple[str, ...]) -> None:
    assert chains("kafka_stale_commit", *words)[0].subject == "payments 4 of group payments-ledger"


@pytest.mark.parametrize(
    ("words", "read_as"),
    [
        (("payments", "4"), None),
        (("payments-ledger", "payments-4"), None),
        (("payments", "4", "payments-ledger"), "read as group payments-ledger, topic payments, partition 4"),
        (("4", "payments"), "read as topic payments, partition 4"),
    ],
)
def test_words_in_another_order_are_said_to_be_read_so(words: tuple[str, ...], read_as: str | None) -> None:
    remarks = chains("kafka_stale_commit", *words)[0].remarks
    assert [one for one in remarks if one.startswith("read as")] == ([read_as] if read_as else [])
