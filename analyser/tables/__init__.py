"""Decoded rows to tables. In: `Decoded`, or another `TableSource`. Out: `Analysis` with registered tables, SQL and findings."""
