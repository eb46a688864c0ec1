"""Authentication: PLAIN, SCRAM and OAUTHBEARER in every form that clients use, again after a while, and refused.

librdkafka with SaslAuthenticate; kafka-python with it and, set to an old broker, with bare tokens behind SaslHandshake
0; the Java client, which authenticates again on its connection before the session ends. Two clients have a wrong
password. Passwords are of the lab only.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.lab import clients, everyday, kafka
from tests.lab.broker_log import LogRecord
from tests.lab.processes import LabError, read_events
from tests.lab.runs import Run

SHOWS = "authentication: PLAIN, SCRAM, OAUTHBEARER; bare tokens, SaslAuthenticate, re-authentication, refusals"
HOSTS = ("rdkafka", "kafka-python", "java")
CLIENTS = (
    f"kafka-clients {kafka.version()}",
    clients.python_pin("confluent-kafka"),
    clients.python_pin("kafka-python"),
)
EXPECTED = ("KAF312", "NET103")
SASL_PORT = 9094
PLAIN_PASSWORD, SCRAM_PASSWORD, WRONG_PASSWORD = "lab-plain-7Qx2", "lab-scram-9Kd4", "lab-wrong-3Vb8"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
_BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
_LISTENER = "listener.name.sasl_plaintext"
REAUTHENTICATE_MS = 3000
FEED_S = 7  # long enough to authenticate again
SERVER = kafka.Kafka(
    settings=(
        f"listeners=PLAINTEXT://$address:$port,SASL_PLAINTEXT://$address:{SASL_PORT},CONTROLLER://$controller:9093",
        f"advertised.listeners=PLAINTEXT://$address:$port,SASL_PLAINTEXT://$address:{SASL_PORT}",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        f'{_LISTENER}.plain.sasl.jaas.config={_PLAIN} user_paula="{PLAIN_PASSWORD}";',
        f"{_LISTENER}.scram-sha-256.sasl.jaas.config={_SCRAM};",
        f"{_LISTENER}.scram-sha-512.sasl.jaas.config={_SCRAM};",
        f'{_LISTENER}.oauthbearer.sasl.jaas.config={_BEARER} unsecuredLoginStringClaim_sub="otto";',
        f"connections.max.reauth.ms={REAUTHENTICATE_MS}",
    ),
    format_words=(
        (
            "--add-scram",
            f"SCRAM-SHA-256=[name=sam,password={SCRAM_PASSWORD}]",
            "--add-scram",
            f"SCRAM-SHA-512=[name=sam,password={SCRAM_PASSWORD}]",
        ),
    ),
)
# kafka-python takes the broker for one of this release: SaslHandshake 0 and bare tokens.
OLD = ("api_version=0.10.0",)


class Look(NamedTuple):
    """A client that looks at the topics: library, client id, mechanism, user, password, more settings, the result."""

    library: str
    client_id: str
    mechanism: str
    user: str | None
    password: str | None
    settings: tuple[str, ...] = ()
    accepted: bool = True

    @property
    def form(self) -> str:
        """How its tokens travel."""
        return "bare_tokens" if self.settings == OLD else "sasl_authenticate"

    def command(self, endpoint: str) -> list[str]:
        """Return the command that runs it."""
        names = NAMES[self.library]
        known = (endpoint, self.client_id, self.mechanism, "SASL_PLAINTEXT", self.user, self.password)
        words = [f"{name}={value}" for name, value in zip(names, known, strict=True) if value is not None]
        return clients.python_command("sasl_client", self.library, *words, *self.settings)


NAMES = {
    "rdkafka": ("bootstrap.servers", "client.id", "sasl.mechanism", "security.protocol", "sasl.username",
                "sasl.password"),
    "kafka-python": ("bootstrap_servers", "client_id", "sasl_mechanism", "security_protocol", "sasl_plain_username",
                     "sasl_plain_password"),
}  # fmt: skip
UNSECURED = ("enable.sasl.oauthbearer.unsecure.jwt=true", "sasl.oauthbearer.config=principal=otto")
LOOKS = (
    Look("rdkafka", "plain", "PLAIN", "paula", PLAIN_PASSWORD),
    Look("rdkafka", "scram-256", "SCRAM-SHA-256", "sam", SCRAM_PASSWORD),
    Look("rdkafka", "bearer", "OAUTHBEARER", None, None, UNSECURED),
    Look("rdkafka", "wrong-plain", "PLAIN", "paula", WRONG_PASSWORD, accepted=False),
    Look("rdkafka", "wrong-scram", "SCRAM-SHA-512", "sam", WRONG_PASSWORD, accepted=False),
    Look("kafka-python", "python", "SCRAM-SHA-512", "sam", SCRAM_PASSWORD),
    Look("kafka-python", "old-plain", "PLAIN", "paula", PLAIN_PASSWORD, OLD),
    Look("kafka-python", "old-scram", "SCRAM-SHA-512", "sam", SCRAM_PASSWORD, OLD),
)


def prepare() -> None:
    """Build the clients."""
    clients.check_python_client("confluent-kafka")
    clients.check_python_client("kafka-python")
    clients.java_command()


def drive(run: Run) -> None:
    """Let one client after the other look at the topics; the Java client stays until it has to authenticate again."""
    endpoint = f"{run.endpoint.partition(':')[0]}:{SASL_PORT}"
    run.call("topics", "java", *clients.java_command(
        "topics", f"bootstrap.servers={run.endpoint}", "client.id=topic-admin", "topics=orders:1"))  # fmt: skip
    for look in LOOKS:
        run.call(look.client_id, look.library, *look.command(endpoint))
    feed = run.start("feed", "java", *clients.java_command(
        "produce", f"bootstrap.servers={endpoint}", "client.id=feed", "topic=orders", "codecs=none", "pause_ms=500",
        "security.protocol=SASL_PLAINTEXT", "sasl.mechanism=SCRAM-SHA-256",
        f'sasl.jaas.config={_SCRAM} username="sam" password="{SCRAM_PASSWORD}";'))  # fmt: skip
    time.sleep(FEED_S)
    feed.check_alive("the feed was told to end")
    feed.terminate()


def facts(records: list[LogRecord], directory: Path) -> dict[str, Any]:
    """Return who was let in and who was not; LabError where it is not as wanted."""
    authentications = []
    for look in LOOKS:
        events = [event["event"] for event in read_events(directory / f"{look.client_id}.out")]
        if events != ["looked" if look.accepted else "refused"]:
            raise LabError(f"{look.client_id}: {events}")
        known = {} if look.user is None else {"user_name": look.user}
        authentications.append({
            "client_id": look.client_id, "mechanism": look.mechanism, **known, "form": look.form,
            "accepted": look.accepted,
        })  # fmt: skip
    return {
        "group": [],
        "authentication": authentications,
        "reauthenticating": "feed-none",
        "reauthenticate_ms": REAUTHENTICATE_MS,
        "api_versions": everyday.versions_seen(records),
    }
