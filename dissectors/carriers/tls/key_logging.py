"""How software can be made to log its TLS keys: one table for the rule that names a way, the guide and docs/tls.md.

Imports nothing: whoever shows a page of the guide does not wait.
"""

from __future__ import annotations

from typing import NamedTuple


class Way(NamedTuple):
    """software: whose way it is. command: what to type or to set. note: what has to be known of it, empty for nothing.

    libraries: how the names of those begin that this is the way for. tried: with real software, and read here.
    """

    software: str
    command: str
    note: str
    libraries: tuple[str, ...]
    tried: bool


WAYS = (
    Way(
        "Python",
        'context.keylog_filename = "/tmp/keys.log"',
        "of the ssl_context in use; for the default context SSLKEYLOGFILE=/tmp/keys.log does it",
        ("kafka-python", "aiokafka"),
        True,
    ),
    Way("OpenSSL's own program", "openssl s_client -keylogfile /tmp/keys.log -connect HOST:PORT", "", (), True),
    Way(
        "Node",
        "node --tls-keylog=/tmp/keys.log PROGRAM",
        "",
        ("kafkajs", "@confluentinc", "@platformatic", "nodejs", "mongosh"),
        True,
    ),
    Way("Go", "tls.Config{KeyLogWriter: file}", "", ("sarama", "kgo", "kafka-go", "mongo-go-driver"), True),
    Way(
        "Java",
        "java -javaagent:extract-tls-secrets.jar=/tmp/keys.log ...",
        "an agent, extract-tls-secrets (4.0.0 was tried)",
        ("apache-kafka-java", "mongo-java-driver"),
        True,
    ),
    Way("OpenSSL 3.5", "SSLKEYLOGFILE=/tmp/keys.log PROGRAM", "where it is built with enable-sslkeylog", (), False),
    Way(
        "anything with OpenSSL",
        "ecapture tls -m keylog -k /tmp/keys.log",
        "on Linux",
        ("librdkafka", "confluent-kafka", "rdkafka", "pymongo"),
        False,
    ),
)
