"""Secrets as real systems put them into names, properties, settings and error texts.

In: nothing. Out: texts with the secret that each holds, all different, so that a test can look for them in any output.
"""

from __future__ import annotations

from typing import NamedTuple


class Planted(NamedTuple):
    """A text, and what of it nobody may see."""

    text: str
    secret: str


def _texts() -> list[tuple[str, str]]:
    """`%` stands for the secret."""
    return [
        # connection strings
        ("mongodb://app:%@db1:27017/shop?authSource=admin", "plain"),
        ("mongodb+srv://app:%@cluster0.abc.mongodb.net/?retryWrites=true", "plain"),
        ("mongodb://app:%@db1/", "with/slash"), ("mongodb://app:%@db1/", "with:colon"),
        ("mongodb://app:%@db1/", "with@at"), ("amqp://guest:%@rabbit:5672/%2f", "plain"),
        ("redis://:%@cache:6379/0", "plain"), ("postgresql://u:%@h:5432/d?sslmode=require", "plain"),
        ("https://user:%@registry.example.com/subjects", "plain"), ("mqtts://dev:%@broker:8883", "plain"),
        ("http://proxy:%@10.0.0.1:3128 refused the connection", "plain"), ("ftp://a:%@h", "plain"),
        # JDBC
        ("jdbc:postgresql://h:5432/d?user=a&password=%&ssl=true", "plain"),
        ("jdbc:mysql://h/d?user=a&password=%", "plain"), ("jdbc:sqlserver://h:1433;user=sa;password=%;x=1", "plain"),
        ("jdbc:db2://h:50000/d:user=a;password=%;", "plain"), ("jdbc:snowflake://h/?user=a&private_key_pwd=%", "plain"),
        ("jdbc:mysql://root:%@h/d", "plain"), ("Server=h;User Id=a;Password=%;Encrypt=yes", "plain"),
        ("Server=h;Uid=a;Pwd=%;", "plain"),
        ("jdbc:oracle:thin:scott/%@//h:1521/orcl", "plain"), ("jdbc:oracle:oci:scott/%@db", "plain"),
        # JAAS
        ('org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="%";', "plain"),
        ('ScramLoginModule required username="a" password="%";', "with blank"),
        ("OAuthBearerLoginModule required clientId='a' clientSecret='%';", "plain"),
        ("ScramLoginModule required username=a password=%;", "plain"),
        # URLs
        ("https://api.example.com/v1?access_token=%&x=1", "plain"), ("wss://h/mqtt?token=%", "plain"),
        ("https://api.example.com/v1?api_key=%", "plain"), ("https://api.example.com/v1?apikey=%", "plain"),
        ("https://a.blob.core.windows.net/c/b?sv=2022&sr=b&sig=%&se=1", "plain"),
        ("https://b.s3.amazonaws.com/k?X-Amz-Credential=a&X-Amz-Signature=%", "hex"),
        ("https://b.s3.amazonaws.com/k?X-Amz-Security-Token=%", "plain"),
        ("https://h/callback?client_secret=%&code=1", "plain"), ("/mqtt?jwt=%", "plain"),
        ("?SDK=Python&x-amz-customauthorizer-name=a&token=%", "plain"),
        # pairs
        ("password=%", "plain"), ("sasl.password=%", "plain"), ("passwd=%", "plain"), ("PASSWORD = %", "plain"),
        ("db_password=%", "plain"), ("ssl.keystore.password=%", "plain"), ("client_secret=%", "plain"),
        ("aws_secret_access_key=%", "plain"), ("secret-key=%", "plain"), ("auth_token=%", "plain"),
        ("basic.auth.user.info=%", "user:plain"), ("basic.auth.credentials=%", "plain"), ("auth.header=%", "plain"),
        ("SharedAccessKeyName=a;SharedAccessKey=%;EntityPath=e", "base64"),
        ("DefaultEndpointsProtocol=https;AccountName=a;AccountKey=%;", "base64"),
        ("SharedAccessSignature sr=h&sig=%&se=1&skn=p", "plain"), ("sessionCookie=%", "plain"),
        # SQL
        ("CREATE USER 'a'@'h' IDENTIFIED BY '%'", "plain"),
        ("ALTER USER a IDENTIFIED WITH mysql_native_password BY '%';", "plain"),
        ("ALTER ROLE a WITH LOGIN PASSWORD '%'", "with blank"),
        ("GRANT ALL ON *.* TO a IDENTIFIED BY PASSWORD '%'", "hex"),
        # JSON
        ('{"user": "a", "password": "%"}', "plain"), ('{"apiKey":"%"}', "plain"), ("{'token': '%'}", "plain"),
        ('{"config": "{\\"password\\": \\"%\\"}"}', "plain"), ('["Authorization", "%"]', "plain"),
        ('{"accessToken":"%","expires":1}', "plain"), ('{"private_key": "%"}', "with blank"),
        # header fields
        ("Authorization: Bearer %", "mixed"), ("authorization: basic %", "base64"), ("Bearer % was refused", "mixed"),
        ("Proxy-Authorization: Basic %", "base64"), ("X-Api-Key: %", "mixed"), ("Cookie: session=%", "mixed"),
        ("Authorization=Token %", "mixed"), ("auth failed for header Authorization: ApiKey %", "mixed"),
        # secrets by themselves
        ("%", "jwt"), ("user % is not allowed", "jwt"), ("key % expired", "aws"), ("github %", "github"),
        ("slack %", "slack"), ("vault %", "vault"), ("gitlab %", "gitlab"), ("-----BEGIN PRIVATE KEY-----%", "pem"),
        ("-----BEGIN RSA PRIVATE KEY-----%", "pem"), ("google %", "google"), ("a %", "github fine"),
        ("stripe %", "stripe"),
        ("mail %", "sendgrid"), ("npm %", "npm"), ("https://hooks.slack.com/services/T000/B000/%", "mixed"),
        ("https://discord.com/api/webhooks/1234567890/%", "mixed"),
        # error texts
        ("Invalid value % for configuration ssl.keystore.password: too short", "plain"),
        ("Invalid value % for configuration sasl.jaas.config: no semicolon", "plain"),
        ("Invalid value % for configuration ssl.key.password: too short", "with blank"),
        ("Invalid value % for configuration ldap.bind.pwd", "plain"),
        ("Invalid value % for configuration api.token: expired", "plain"),
        ("Invalid credentials: password=%", "plain"), ("cannot connect to mongodb://a:%@h: timed out", "plain"),
        ("login failed (user=a, password=%)", "plain"), ("bad token: %", "mixed"), ("bad api key: api_key: %", "mixed"),
    ]  # fmt: skip


def _secret(kind: str, number: int) -> str:
    tail = f"q{number:03}"
    return {
        "plain": f"Hunter2Zx{tail}", "with/slash": f"Hun/ter{tail}", "with:colon": f"Hun:ter{tail}",
        "with@at": f"Hun@ter{tail}", "with blank": f"two words {tail}", "hex": f"9f86d081884c7d65{number:04x}",
        "base64": f"dXNlcjpwYXNz{tail}aGVsbG8=", "mixed": f"aB3dE5fG7h{tail}", "user:plain": f"registry:Hunter2{tail}",
        "jwt": f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ{tail}In0.c2ln{tail}", "aws": f"AKIAIOSFODNN7EX{number:05}",
        "github": f"ghp_16C7e42F292c6912E7710c838347Ae{tail}", "slack": f"xoxb-17653672481-19874698323-{tail}",
        "vault": f"hvs.CAESIJlWh8kLk3r2{tail}abcd", "gitlab": f"glpat-zyxwvutsrqponm12{tail}",
        "google": f"AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkF{tail}",
        "github fine": f"github_pat_11ABCDEFG0abcdefghij_k{tail}",
        "stripe": f"sk_live_4eC39HqLyjWDarjtT1{tail}", "npm": f"npm_16C7e42F292c6912E7710c838347Ae78{tail}",
        "sendgrid": f"SG.ngeVfQFYQlKU0ufo8x5d1A.TwL2iGABf9DHoTf09kqeF8tAmbihYzrnopKc{tail}",
        "pem": f"MIIEvQIBADANBgkqhkiG9w0BAQ{tail}",
    }[kind]  # fmt: skip


CORPUS = [
    Planted(text.replace("%2f", "/v").replace("%", secret), secret)
    for number, (text, kind) in enumerate(_texts())
    for secret in [_secret(kind, number)]
]
# What an engineer must go on seeing.
ORDINARY = [
    "Basic authentication failed for client ledger-a", "token expired", "Invalid token: expired",
    "SASL handshake failed", "Authentication failed: the password is wrong", "orders.token-events",
    "secret-santa-service", "payments-key-rotation", "http://schema-registry:8081/subjects/a@b",
    "https://host:8443/path?partition=3&offset=17", "key: 5", "auth-service",
    "ledger-a-e13ee0ec-dd92-4aaa-b6a1-78494f808d4d", "ssl.keystore.type=PKCS12", "max.message.bytes=1048588",
    "sasl.mechanism=SCRAM-SHA-512", "retention.ms=604800000", "user=alice", "Bearer failed", "digest is wrong",
    "E11000 duplicate key error collection: shop.users index: email_1", "cleanup.policy=compact,delete",
    "a@b.example", "mongodb://db1:27017/shop", "cannot reach 10.0.0.1:9092", "the cookie jar",
    "authorization of topic orders denied", "Group coordinator not available",
    "DelegationToken request is not allowed on PLAINTEXT", "certificate has expired",
    "the member identified by 'ledger-a' is gone", "no password given",
    "Invalid value org.x.Y for configuration key.serializer: no such class", "sk-payments-orders-retry-events-dlq",
    "Invalid value 5 for configuration retention.ms: too small", "jdbc:oracle:thin:@//h:1521/orcl",
]  # fmt: skip
