"""Helpers of sections, and sections that any protocol shares.

In: answers to questions. Out: sections.
"""
