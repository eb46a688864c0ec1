"""Causes of `why` that MongoDB has.

In: a source and a subject. Out: causes.
"""
