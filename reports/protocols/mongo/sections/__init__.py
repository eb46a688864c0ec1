"""Sections of the report about MongoDB.

In: answers to questions. Out: sections.
"""
