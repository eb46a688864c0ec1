"""Kinds of secrets, each in a text as a program or a person writes it, and ordinary texts beside them.

In: nothing. Out: KINDS, all with different secrets that are made up anew by a fixed seed, so that no pattern can know
them; READABLE, what an engineer has to go on seeing. `secret_corpus.py` has older ones.
"""

from __future__ import annotations

import base64
import json
import random
import string
from typing import NamedTuple

_HEX, _UPPER, _LOWER, _DIGITS = "0123456789abcdef", string.ascii_uppercase, string.ascii_lowercase, string.digits
_BOTH = string.ascii_letters + _DIGITS
_URL = _BOTH + "-_"
# `h` hex, `u` upper case and digits, `b` letters and digits, `w` letters, digits, - and _, `p` a password that a person
# chose; 4h is four of them.
_OF = {"h": _HEX, "u": _UPPER + _DIGITS, "b": _BOTH, "w": _URL, "d": _DIGITS, "l": _LOWER + _UPPER}


class Kind(NamedTuple):
    """text: as it is written. secret: what nobody may see of it. by_chance: only that nobody chose it tells it."""

    text: str
    secret: str
    by_chance: bool = False


def _password(rng: random.Random) -> str:
    return (
        rng.choice(("Winter", "Sommer", "Tiger", "Paris")) + "".join(rng.choices(_BOTH, k=5)) + rng.choice("159") + "x"
    )


def _made(form: str, rng: random.Random) -> str:
    """`AB-{8h}`: the letters as they stand, and for {8h} eight of the alphabet h."""
    done = ""
    while form:
        before, opened, form = form.partition("{")
        done += before
        if opened:
            what, _, form = form.partition("}")
            done += _password(rng) if what == "p" else "".join(rng.choices(_OF[what[-1]], k=int(what[:-1])))
    return done


# The text, `%` for the secret; its form.
_FORMS: list[tuple[str, str]] = [
    # tokens of providers
    ("stripe %", "rk_live_{24b}"),
    ("stripe restricted %", "rk_test_{24b}"),
    ("hook %", "whsec_{32b}"),
    ("twilio %", "SK{32h}"),
    ("twilio account %", "AC{32h}"),
    ("mailgun %", "key-{32h}"),
    ("mail %", "SG.{22w}.{43w}"),
    ("chimp %", "{32h}-us12"),
    ("brevo %", "xkeysib-{64h}-{16b}"),
    ("slack %", "xapp-1-A{10u}-{13d}-{64h}"),
    ("slack user %", "xoxp-{12d}-{12d}-{12d}-{32h}"),
    ("slack refresh %", "xoxe-1-{40w}"),
    ("discord %", "M{25w}.{6w}.{38w}"),
    ("telegram %", "{9d}:A{34w}"),
    ("droplet %", "dop_v1_{64h}"),
    ("oauth of it %", "doo_v1_{64h}"),
    ("spark %", "dapi{32h}"),
    ("azure %", "{3b}8Q~{34b}"),
    ("aws id %", "ASIA{16u}"),
    ("google %", "GOCSPX-{28w}"),
    ("google %", "ya29.{60w}"),
    ("confluent %", "cflt{60b}"),
    ("new relic %", "NRAK-{27u}"),
    ("relic ingest %", "NRII-{32w}"),
    ("grafana %", "glsa_{32b}_{8h}"),
    ("grafana cloud %", "glc_{60b}"),
    ("pypi %", "pypi-AgEIcHlwaS5vcmc{60w}"),
    ("shop %", "shpat_{32h}"),
    ("square %", "sq0csp-{43w}"),
    ("square %", "sq0atp-{22w}"),
    ("heroku %", "HRKU-{36w}"),
    ("vault %", "hvb.{80w}"),
    ("vault recovery %", "hvr.{40w}"),
    ("vault old %", "s.{24b}"),
    ("age %", "AGE-SECRET-KEY-1{58u}"),
    ("linear %", "lin_api_{40b}"),
    ("openai %", "sk-proj-{48w}"),
    ("openai %", "sk-{48b}"),
    ("claude %", "sk-ant-api03-{90w}AA"),
    ("models %", "hf_{34l}"),
    ("doppler %", "dp.pt.{43b}"),
    ("terraform %", "{14b}.atlasv1.{60w}"),
    ("gitlab runner %", "glrt-{20w}"),
    ("gitlab deploy %", "gldt-{20w}"),
    ("github app %", "ghs_{36b}"),
    ("atlassian %", "ATATT3{180w}"),
    ("docker %", "dckr_pat_{27w}"),
    ("gems %", "rubygems_{48h}"),
    ("crates %", "cio{32b}"),
    ("nuget %", "oy2{43h}"),
    ("sonar %", "squ_{40h}"),
    ("pulumi %", "pul-{40h}"),
    ("buildkite %", "bkua_{40h}"),
    ("sentry %", "sntrys_{60b}"),
    ("aiven %", "AVNS_{19w}"),
    ("tailscale %", "tskey-auth-{16b}-{32b}"),
    ("planetscale %", "pscale_tkn_{43w}"),
    ("supabase %", "sbp_{40h}"),
    ("dynatrace %", "dt0c01.{24u}.{64u}"),
    ("postman %", "PMAK-{24h}-{34h}"),
    ("notion %", "ntn_{46b}"),
    ("airtable %", "pat{14b}.{64h}"),
    ("figma %", "figd_{40w}"),
    ("groq %", "gsk_{52b}"),
    ("replicate %", "r8_{37b}"),
    ("nvidia %", "nvapi-{64w}"),
    ("langsmith %", "lsv2_pt_{32h}_{10h}"),
    ("plaid %", "access-production-{8h}-{4h}-{4h}-{4h}-{12h}"),
    ("alibaba %", "LTAI{20b}"),
    ("openshift %", "sha256~{43w}"),
    ("artifactory %", "AKCp{69b}"),
    ("okteto 1p %", "A3-{6u}-{11u}-{5u}-{5u}-{5u}"),
    ("launch %", "sdk-{8h}-{4h}-{4h}-{4h}-{12h}"),
    # what is made of passwords and keys
    ("htpasswd: joe:%", "$2y$10${53b}"),
    ("shadow root:%:19000:0", "$6${16b}${86b}"),
    ("apache %", "$apr1${8b}${22b}"),
    ("argon %", "$argon2id$v=19$m=65536,t=3,p=4${22b}${43b}"),
    ("ldap %", "{SSHA}".replace("{", "\x01") + "{32b}"),
    ("pg SCRAM %", "SCRAM-SHA-256$4096:{24b}${44b}:{44b}"),
    ("django %", "pbkdf2_sha256$260000${22b}${43b}="),
    ("SaltedPassword=%", "{40h}"),
    ('"storedKey": "%"', "{27b}="),
    ("n,,n=ada,r=%", "{24b}"),
    ("r=%,s=c2FsdHNhbHQ=,i=4096", "{48b}"),
    ("c=biws,r=abc,p=%", "{43b}="),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\\n%\\n-----END", "b3BlbnNzaC1rZXktdjEA{200b}"),
    ("-----BEGIN PGP PRIVATE KEY BLOCK-----\\n\\n%", "lQOYB{200b}"),
    ("-----BEGIN EC PRIVATE KEY-----\\n%\\n", "MHcCAQEE{120b}"),
    (
        '{"type":"service_account","private_key":"-----BEGIN PRIVATE KEY-----\\n%\\n-----END PRIVATE KEY-----\\n"}',
        "MIIEvg{200b}",
    ),
    ('{"kty":"RSA","n":"abc","d":"%"}', "{86w}"),
    ('{"kty":"oct","k":"%"}', "{43w}"),
    ("Private-Lines: 14\\n%", "AAAB{64b}"),
    # command lines
    ("kafka-cli --password %", "{p}"),
    ("tool --token %", "{p}"),
    ("login.sh -p %", "{p}"),
    ("mysql -h db -u root -p%", "{p}"),
    ("mysqldump -uroot -p'%' shop", "{p}"),
    ("curl -u joe:% https://h/", "{p}"),
    ("curl --user joe:% https://h/", "{p}"),
    ("redis-cli -h c -a % ping", "{p}"),
    ("mosquitto_pub -p 1883 -u dev -P % -t x", "{p}"),
    ("sshpass -p % ssh h", "{p}"),
    ("ldapsearch -x -D cn=admin -w %", "{p}"),
    ("mongosh -u ada -p % db1", "{p}"),
    ("export DB_PASS=%", "{p}"),
    ("PGPASSWORD=% psql", "{p}"),
    ("MYSQL_PWD=% mysql", "{p}"),
    ("openssl -passin pass:%", "{p}"),
    ("AUTH default %", "{p}"),
    ("sqlplus scott/%@orcl", "{p}"),
    ("aws configure set aws_secret_access_key %", "{40b}"),
    # files and texts
    ("password: %", "{p}"),
    ("db:\\n  password: %\\n", "{p}"),
    ("password = '%'", "{p}"),
    ("<password>%</password>", "{p}"),
    ("<ns:Password Type='x'>%</ns:Password>", "{p}"),
    ('<add key="Password" value="%"/>', "{p}"),
    ('{"name":"db.password","value":"%"}', "{p}"),
    ('{\\"a\\":{\\"password\\":\\"%\\"}}', "{p}"),
    ('"{\\\\\\"password\\\\\\":\\\\\\"%\\\\\\"}"', "{p}"),
    ("q=1%26password%3D%%26x", "{p}"),
    ("body=%22password%22%3A%22%%22", "{p}"),
    ("machine h login joe password %", "{p}"),
    ("db.example.com:5432:shop:joe:%", "{p}"),
    ("userPassword:: %", "{24b}="),
    ("Driver={SQL Server};Server=h;Uid=a;Pwd={%};", "{p}"),
    ("Data Source=h;User ID=sa;Password=%;", "{p}"),
    ("amqps://svc:%@rabbit/vh", "{p}"),
    ("rediss://default:%@cache:6380", "{p}"),
    ("smtp://joe:%@mail:587", "{p}"),
    ("KafkaClient { PlainLoginModule required\\n username='a'\\n password='%'; };", "{p}"),
    ("GET /cb?code=%&state=1", "{30w}"),
    ("grant_type=refresh_token&refresh_token=%", "{40w}"),
    ("device?user_code=%", "{8u}"),
    ("SAMLResponse=%", "PHNhbWxwOlJlc3BvbnNl{80b}"),
    ("<saml:Assertion ID='a'>%</saml:Assertion>", "{40b}"),
    ("Set-Cookie: sid=%; Path=/", "{32b}"),
    ("Cookie: a=1; JSESSIONID=%", "{32u}"),
    ("PHPSESSID=%", "{13h}{13h}a1"),
    ("proxy said: Basic %", "am9lOlBhc3N3{12b}=="),
    ("the password is %, try it", "{p}"),
    ("wrong password '%' for joe", "{p}"),
    ("https://x.webhook.office.com/%", "webhookb2/{30h}"),
    ("_authToken=%", "{36h}"),
    ("connectionString=%", "{30b}"),
    ("X-Api-Key: %", "{8h}-{4h}-{4h}-{4h}-{12h}"),
    ("Authorization: Bearer %", "{8h}-{4h}-{4h}-{4h}-{12h}"),
    ("token %", "eyJhbGciOiJSUzI1NiIsImtpZCI6Ing{40w}.eyJpc3MiOiJrdWJlcm5ldGVz{60w}.{80w}"),
]
# Only that nobody chose them tells these.
_BY_CHANCE = [
    ("aws %", "q{39b}"),
    ("datadog %", "{32h}"),
    ("datadog app %", "{40h}"),
    ("confluent %", "{64b}"),
    ("key=%", "{44w}"),
    ("got %", "{24b}"),
    ("session %", "{32b}"),
    ("%", "{40h}"),
    ("MAC %", "{64h}"),
    ("batch %", "{43w}"),
    ("refused %", "{26w}"),
]


def _kinds() -> list[Kind]:
    made = []
    for number, (text, form) in enumerate([*_FORMS, *_BY_CHANCE]):
        rng = random.Random(7919 * number + 1)
        secret = _made(form.replace("\x01SSHA}", "\x01"), rng).replace("\x01", "{SSHA}")
        # The encoded texts have more of the sign that stands for the secret.
        written = text.replace("%22%3A%22%%22", f"%22%3A%22{secret}%22").replace("%3D%%26", f"%3D{secret}%26")
        written = written if secret in written else text.replace("%", secret)
        made.append(
            Kind(written.replace("\\n", "\n") if "BEGIN" not in text else written, secret, number >= len(_FORMS))
        )
    inside = json.dumps({"user": "joe", "password": "Winter9qxZ"})
    encoded = base64.b64encode(inside.encode()).decode()
    return [
        *made,
        Kind(f"config {encoded}", encoded),
        Kind(base64.b64encode(b"n,,n=ada,r=9xKq2LmZ").decode(), base64.b64encode(b"n,,n=ada,r=9xKq2LmZ").decode()),
    ]


KINDS = _kinds()
# What stays as it is, in any text.
READABLE = [
    "kafka-0.kafka.svc.cluster.local:9092",
    "ip-10-0-12-34.eu-west-1.compute.internal",
    "10.77.0.12:9092",
    "fe80::1ff:fe23:4567:890a",
    "b-1.payments.x1y2z3.c5.kafka.us-east-1.amazonaws.com:9098",
    "pkc-4nym6.us-east-1.aws.confluent.cloud",
    "cluster0-shard-00-02.abc12.mongodb.net:27017",
    "org.apache.kafka.clients.consumer.RangeAssignor",
    "org.apache.kafka.common.serialization.StringDeserializer",
    "io.confluent.connect.jdbc.JdbcSourceConnector",
    "cooperative-sticky",
    "4.3.0",
    "3.9.1-SNAPSHOT",
    "1048588",
    "64 MiB",
    "2026-11-20T11:24:05.123456Z",
    "2026-11-20 11:24:05+01:00",
    "consumer-g-1-550e8400-e29b-41d4-a716-446655440000",
    "orders-7d9c5b6f4-x2x9k",
    "payments-service-66b6c48dd5-7k2xq",
    "zstd",
    "snappy",
    "/var/lib/kafka/data/orders-3/00000000000000012345.log",
    "C:\\kafka\\logs\\server.log",
    "SCRAM-SHA-512",
    "TLS_AES_256_GCM_SHA384",
    "task-counter-streams-b-StreamThread-1-consumer",
    "cleanup.policy=compact,delete",
    "E11000 duplicate key error collection: shop.users index: email_1",
    "ObjectId('65f1a2b3c4d5e6f7a8b9c0d1')",
    "Topic 'orders' already exists.",
    "Group coordinator not available",
    "session_id=1048576 partitions=12",
    "the consumer is being closed",
    "Leader election not needed for topic partition.",
    "error=58 SASL_AUTHENTICATION_FAILED",
    "PyMongo 4.9 CPython 3.12.3",
    "CN=kafka-0.example.com,OU=Platform,O=Example GmbH,L=Berlin,C=DE",
    "spBv1.0/Plant1/NDATA/Edge1",
    "partition=3 offset=123456789012",
    "password authentication failed",
    "no password given",
    "token expired",
    "Basic settings",
    "docker run -p 9092:9092 kafka",
    "ssh -p 2222 host",
    "PaymentsService2024ProdEU01",
    "192.168.100.200:27017",
    "00:1a:2b:3c:4d:5e",
    '{"version":3,"topics":["orders"],"owned":{},"generation_id":-1}',
    "0:1,1:2,2:0",
    "max.poll.interval.ms=300000",
]
