"""Sections of the report about Kafka.

In: answers to questions. Out: sections.
"""
