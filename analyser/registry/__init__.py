"""Definitions of the registered tables: `model` says what a table is, then one file for each protocol."""
