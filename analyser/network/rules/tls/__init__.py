"""Rules about TLS around the protocols. In: flows. Out: findings on handshakes, certificates, suites, wrong ports."""
