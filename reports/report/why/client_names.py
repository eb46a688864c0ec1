"""Who the clients of a chain are. In: chains. Out: the same, which name process, pod or host of a client where it
stands first, as far as a capture or a file of names knows one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from wirewitness.reports.base.questions.workloads import OWNERS, is_anybody_named
from wirewitness.reports.base.why.asking import Asking, name, who
from wirewitness.reports.base.why.model import Chain, Step

_CLIENTS = f"""
    with clients as (
        select client_id as name, client_address, client_process, client_pod, client_host from exchanges
        union all
        select app_name, client_address, client_process, client_pod, client_host from mongo_commands
        where app_name is not null)
    select name, client_address, {OWNERS} as owner from clients group by all having owner is not null"""


def named(ask: Asking, chains: Sequence[Chain]) -> list[Chain]:
    """Each client with its owner, once in a chain."""
    if not is_anybody_named(ask.source):
        return list(chains)
    owners = {who(row["name"], row["client_address"]): name(row["owner"]) for row in ask.rows(_CLIENTS)}
    return [_chain(chain, owners) for chain in chains]


def _chain(chain: Chain, owners: Mapping[str, str]) -> Chain:
    naming = _Naming(owners)
    verdict = naming.sentence(chain.verdict)
    return replace(chain, verdict=verdict, steps=tuple(map(naming.step, chain.steps)))


@dataclass(slots=True)
class _Naming:
    """Names clients that were not named yet. Clients stand in sentences as `who` writes them."""

    owners: Mapping[str, str]
    done: set[str] = field(default_factory=set)

    def step(self, step: Step) -> Step:
        what = self.sentence(step.link.what)
        return replace(step, link=replace(step.link, what=what), causes=tuple(map(self.step, step.causes)))

    def sentence(self, text: str) -> str:
        return re.sub(r"\S+@[0-9A-Fa-f:.]*[0-9A-Fa-f]", self._with_owner, text)

    def _with_owner(self, found: re.Match[str]) -> str:
        client = found[0]
        if client in self.done or client not in self.owners:
            return client
        self.done.add(client)
        return f"{client} ({self.owners[client]})"
