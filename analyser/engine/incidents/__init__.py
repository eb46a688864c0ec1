"""Findings of one cause together.

In: findings. Out: the same, each with its story and its place in it. Which code follows from which is a table.
"""
