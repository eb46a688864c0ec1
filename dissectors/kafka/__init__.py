"""Kafka: framing, schemas, decoding and correlation of requests with responses."""
