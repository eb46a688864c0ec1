"""Facts about connections.

In: tables of flows, messages and exchanges. Out: `connection_ends`.
"""
