"""Rules about what any protocol shares.

In: views of the registered tables. Out: findings.
"""
