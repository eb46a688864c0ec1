"""Facts about connections.

In: tables of flows and exchanges. Out: `connection_ends`.
"""
