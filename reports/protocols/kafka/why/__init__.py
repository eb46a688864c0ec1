"""Causes of `why` that Kafka has.

In: a source and a subject. Out: causes.
"""
