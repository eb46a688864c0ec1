"""What each protocol's software calls its settings of TLS, and what it logs of a wrong port. In: a protocol's name.

Sources: Kafka's documentation (security.protocol, ssl.*) and librdkafka's; mosquitto.conf(5); MongoDB's connection
string and net.tls; AWS IoT's list of protocols by ALPN.
"""

from __future__ import annotations

# Names that clients of MQTT agree on by ALPN; a cloud takes it at the port of HTTPS under the last one.
ALPN = ("mqtt", "x-amzn-mqtt-ca")
# The port of TLS that is registered at IANA, where no clear text is to be expected.
SECURE_PORTS = (8883,)

OWN_CERTIFICATE = {
    "kafka": "ssl.keystore.location (Java) or ssl.certificate.location and ssl.key.location (librdkafka)",
    "mqtt": "the certificate and key of the client (cafile, certfile, keyfile)",
    "mongo": "tlsCertificateKeyFile in the connection string",
}
ENCRYPTION = {
    "kafka": "security.protocol (SSL or SASL_SSL with TLS, else PLAINTEXT or SASL_PLAINTEXT)",
    "mqtt": "scheme and CA file (mqtts: or ssl: with TLS, by custom at port 8883, else mqtt: or tcp: at 1883)",
    "mongo": "tls=true or tls=false in the connection string",
}
# Where a rule says of each client what TLS106 says of the port: at ports where the protocol is spoken in clear text, at
# these, and where the client speaks it.
TOLD_OF_CLIENTS = {"kafka": (9092, 9093, 9094)}
# The first four bytes taken for a length: a record header, whose last byte is that of its length; "GET "; and "PROX" or
# the signature of the PROXY protocol's version 2.
LOGGED = {
    ("kafka", "TLS"): "Invalid receive (size = 369295616 or 369296128, or a little more)",
    ("kafka", "HTTP"): "Invalid receive (size = 1195725856)",
    ("kafka", "PROXY"): "Invalid receive (size = 1347571544, or 218762506 of version 2)",
}
