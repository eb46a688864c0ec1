"""Rules about MQTT. In: partitions of connections, publishes and remarks. Out: findings that name the client."""
