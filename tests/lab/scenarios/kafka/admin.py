"""An operator's day: everything that the Java AdminClient can change, look at and remove, on one broker.

Topics, partitions, settings, ACLs, quotas, SCRAM credentials, replicas, records, groups, transactions; delegation
tokens over a second listener, where the operator authenticates itself with SASL PLAIN. A group's member works for a
while and leaves; then the operator sets its offsets back, deletes one of them and the group.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.lab import clients, commits, everyday, kafka
from tests.lab.broker_log import LogRecord
from tests.lab.processes import LabError, read_events
from tests.lab.runs import Run

SHOWS = "administration: topics, configs, ACLs, quotas, credentials, tokens, replicas, records, offsets, transactions"
HOSTS = ("operator", "orders")
CLIENTS = (f"kafka-clients {kafka.version()}",)
EXPECTED: tuple[str, ...] = ()  # what an operator sets back is told at info
SASL_PORT = 9094
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SECRET = 'username="operator" password="lab-only-password"'
SERVER = kafka.Kafka(
    settings=(
        f"listeners=PLAINTEXT://$address:$port,SASL_PLAINTEXT://$address:{SASL_PORT},CONTROLLER://$controller:9093",
        f"advertised.listeners=PLAINTEXT://$address:$port,SASL_PLAINTEXT://$address:{SASL_PORT}",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms=PLAIN",
        f'listener.name.sasl_plaintext.plain.sasl.jaas.config={PLAIN} {SECRET} user_operator="lab-only-password";',
        "delegation.token.secret.key=lab-only-key",
        "log.dirs=$run_dir/data,$run_dir/data2",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users=User:ANONYMOUS;User:operator",
    )
)
TOPIC, GROUP = "orders", "orders-batch"
WORK_S = 5.0
BEFORE = ("topics", "configs", "rights", "quotas", "scram")
AFTER = ("cluster", "records", "replicas", "groups", "transactions", "removal")


def prepare() -> None:
    """Build the client."""
    clients.java_command()


def drive(run: Run) -> None:
    """Let the operator prepare everything, a member work and leave, and the operator change and remove things."""
    administer(run, "before", run.endpoint, BEFORE)
    server = f"bootstrap.servers={run.endpoint}"
    feed = run.start("feed", "orders", *clients.java_command(
        "produce", server, "client.id=orders-feed", f"topic={TOPIC}", "codecs=none,gzip", "pause_ms=500",
    ))  # fmt: skip
    member = run.start("member", "orders", *clients.java_command(
        "consume", server, "client.id=batch-a", f"group.id={GROUP}", f"topic={TOPIC}", "group.protocol=classic",
    ))  # fmt: skip
    member.wait_for_event("session")
    time.sleep(WORK_S)
    member.terminate()
    administer(run, "after", run.endpoint, AFTER)
    feed.terminate()
    host = run.endpoint.partition(":")[0]
    administer(run, "tokens", f"{host}:{SASL_PORT}", ("tokens",), "security.protocol=SASL_PLAINTEXT",
               "sasl.mechanism=PLAIN", f"sasl.jaas.config={PLAIN} {SECRET};")  # fmt: skip


def administer(run: Run, name: str, endpoint: str, parts: tuple[str, ...], *settings: str) -> None:
    """Let the operator do some parts of the work."""
    run.call(name, "operator", *clients.java_command(
        "administer", f"bootstrap.servers={endpoint}", "client.id=operator", f"parts={','.join(parts)}",
        f"topic={TOPIC}", f"group={GROUP}", "brokers=1", *settings))  # fmt: skip


def facts(records: list[LogRecord], directory: Path) -> dict[str, Any]:
    """Return what was done and refused, the versions and the offset that went back; LabError if it did not."""
    rows = commits.read_commits(records)
    back = {after.partition for _, after in commits.regressions(rows)}
    if back != {0, 1} or any(row.error_code for row in rows):
        raise LabError(f"offsets of partitions {back} went back")
    events = [event for name in ("before", "after", "tokens") for event in read_events(directory / f"{name}.out")]
    errors = Counter((record.api_name, code) for record in records for code in everyday.error_codes(record.response))
    group = {
        "group": GROUP,
        "topic": TOPIC,
        "partitions_reset": sorted(back),
        "committer": commits.committers(row for row in rows if row.member_id),
    }
    return {
        "work": [event["work"] for event in events if event["event"] == "done"],
        "refused": [f"{event['work']}: {event['error']}" for event in events if event["event"] == "refused"],
        "errors": [{"api": api, "error_code": code, "count": n} for (api, code), n in sorted(errors.items())],
        "api_versions": everyday.versions_seen(records),
        "group": [group],
    }
