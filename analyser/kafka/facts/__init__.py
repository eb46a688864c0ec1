"""Facts of Kafka, each with one owner: clusters, names, log ends, ownership, commits, positions, groups, producers.

In: a connection with views of the decoded tables. Out: columns added to them, and tables of their own.
"""
