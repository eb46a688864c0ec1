"""What tables are. In: nothing. Out: every table with its columns (`tables.TABLES`), and SQL about them.

`model` says what a table is, then there is one file for each protocol.
"""
