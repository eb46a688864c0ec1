"""The scenarios with Apache Kafka brokers."""
