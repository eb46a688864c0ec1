"""Packets to streams. In: batches of TCP segments. Out: flows whose halves queue runs of stream bytes and gaps.

Knows nothing of what the bytes mean: whoever reads a flow is a `flow.FlowReader` to it.
"""
