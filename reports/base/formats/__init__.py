"""A document to text. In: sections of blocks, or batches of rows. Out: text, HTML, Markdown, csv, jsonl.

Knows no table and asks nothing of an analysis.
"""
