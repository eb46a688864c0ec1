"""Findings of one cause together.

In: findings. Out: the same, each with its incident and its place in it. Which code follows from which is a table.
"""
