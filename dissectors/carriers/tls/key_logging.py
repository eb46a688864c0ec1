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


_OWN_CONTEXT = 'context.keylog_filename = "/tmp/keys.log"'
_ECAPTURE = "ecapture tls -m keylog -k /tmp/keys.log"

# The first one covers every client of a broker, whatever it is written in.
WAYS = (
    Way(
        "Java, running",
        "java -jar extract-tls-secrets-4.0.0.jar PID /tmp/keys.log",
        "a broker or client, without a restart; as the user it runs as; for connections made from then on",
        (),
        False,
    ),
    Way(
        "Java",
        "java -javaagent:extract-tls-secrets.jar=/tmp/keys.log ...",
        "an agent, extract-tls-secrets (4.0.0 was tried)",
        ("apache-kafka-java", "mongo-java-driver"),
        True,
    ),
    Way(
        "Python",
        _OWN_CONTEXT,
        "of the ssl_context in use; for the default context SSLKEYLOGFILE=/tmp/keys.log does it",
        (),
        True,
    ),
    Way(
        "kafka-python",
        _OWN_CONTEXT,
        "of the ssl_context that the client is given; SSLKEYLOGFILE alone is ignored",
        ("kafka-python",),
        True,
    ),
    Way(
        "aiokafka",
        "SSLKEYLOGFILE=/tmp/keys.log PROGRAM",
        "with a context of aiokafka.helpers.create_ssl_context",
        ("aiokafka",),
        False,
    ),
    Way(
        "paho-mqtt",
        _OWN_CONTEXT,
        "of the context for tls_set_context; with tls_set SSLKEYLOGFILE is ignored",
        (),
        False,
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
        "confluent-kafka",
        _ECAPTURE,
        "on Linux; SSLKEYLOGFILE is ignored",
        ("librdkafka", "confluent-kafka", "rdkafka"),
        False,
    ),
    Way("pymongo", _ECAPTURE, "on Linux; SSLKEYLOGFILE is ignored, and it takes no context", ("pymongo",), False),
    Way("anything with OpenSSL", _ECAPTURE, "on Linux", (), False),
    Way("OpenSSL 3.5", "SSLKEYLOGFILE=/tmp/keys.log PROGRAM", "where it is built with enable-sslkeylog", (), False),
    Way(
        ".NET 9, on Linux",
        "SSLKEYLOGFILE=/tmp/keys.log PROGRAM",
        'with "System.Net.EnableSslKeyLogging": true in PROGRAM.runtimeconfig.json; on Windows there is no way',
        ("mongo-csharp-driver",),
        False,
    ),
    Way(
        "Rust, rustls",
        "SSLKEYLOGFILE=/tmp/keys.log PROGRAM",
        "where it sets config.key_log = Arc::new(rustls::KeyLogFile::new()); with OpenSSL: ecapture",
        ("mongo-rust-driver",),
        False,
    ),
)

# What tells of a protocol without any key, by its name.
WITHOUT_KEYS = {
    "kafka": (
        "a broker's request log (wirewitness guide request-log), and of commits the stored offsets, "
        "__consumer_offsets (docs/segments.md)"
    ),
}
