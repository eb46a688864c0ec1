"""Measurements of speed and memory beside tshark: `python -m tests.bench.run`."""
