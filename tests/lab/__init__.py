"""The lab: real brokers and real clients in network namespaces, captured; it makes the samples of sample_pcaps."""
