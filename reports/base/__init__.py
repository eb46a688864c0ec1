"""Questions, formats and sections that no protocol has alone.

In: a source of tables. Out: answers, and documents as text, HTML, Markdown, csv or jsonl.
"""
