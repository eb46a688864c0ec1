"""What processes are called, and that nothing of their arguments is said."""

from __future__ import annotations

import pytest

from wirewitness.analyser.capture.workloads.kernel.processes import command

SECRET = "hunter2"
KAFKA = ["java", "-Xmx1G", f"-Dpassword={SECRET}", "-cp", "/opt/kafka/libs/*", "kafka.Kafka", "server.properties"]


@pytest.mark.parametrize(
    ("comm", "exe", "arguments", "expected"),
    [
        ("mongod", "/usr/bin/mongod", ["mongod", "--config", "x"], "mongod"),
        ("kafka-console-c", "/bin/bash", ["/bin/bash", "/opt/kafka-console-consumer.sh"], "kafka-console-c"),
        ("MainThread", "/usr/bin/node", ["node", "app.js"], "node"),  # a name of its main thread
        ("a-program-with-", "/opt/a-program-with-a-long-name", ["x"], "a-program-with-a-long-name"),
        ("nginx", "/usr/sbin/nginx", [f"nginx: worker {SECRET}"], "nginx"),
        ("mosquitto", "/usr/sbin/mosquitto (deleted)", ["mosquitto"], "mosquitto"),
        ("kworker", None, [""], "kworker"),
        ("", None, [], None),
        ("java", "/usr/bin/java", KAFKA, "java kafka.Kafka"),
        ("my-app", "/usr/bin/java", ["java", "-jar", "/srv/payments-1.2.jar", SECRET], "java payments-1.2.jar"),
        ("java", "/usr/bin/java", ["java", "--module", "shop/shop.Main", SECRET], "java shop.Main"),
        ("java", "/usr/bin/java", ["java", "@arguments"], "java"),
        ("java", "/usr/bin/java", ["java", "-jar"], "java"),
        ("java", "/usr/bin/java", ["java", SECRET], "java"),  # no class has such a name
        ("java", "/usr/bin/java", ["java", "--unknown", "user:pass@host", "shop.Main"], "java"),
        ("java", "/usr/bin/java", ["java", "-cp", f"/x/{SECRET}"], "java"),
    ],
)
def test_the_name_of_a_process(comm: str, exe: str | None, arguments: list[str], expected: str | None) -> None:
    found = command(comm, exe, arguments)
    assert found == expected
    assert SECRET not in (found or "")
