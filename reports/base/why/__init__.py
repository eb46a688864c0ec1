"""The model of `why`, and causes that any protocol shares: network, latency.

In: a source and a subject. Out: causes, each with its time, packets and rows.
"""
