"""A small MongoDB server in memory: what the lab's real server lacks, for real drivers to talk to.

Compression, exhaust replies, awaitable hello, transactions, retryable writes, SCRAM-SHA-256, checksums, failures on
request. Documents and compression are pymongo's own; nothing of wirewitness is used. It is no database: find, update
and aggregate know a few operators each and refuse the others.
"""
