"""Facts of MongoDB: cursors and transactions over all connections.

In: a connection with views of the decoded tables. Out: tables of their own.
"""
