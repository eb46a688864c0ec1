"""Decoded rows to tables. In: `Decoded`, or another `TableSource`. Out: `Analysis`.

Tables with their registered columns, SQL over them, and findings.
"""
