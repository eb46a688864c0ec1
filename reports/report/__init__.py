"""What stands in a report. In: answers to questions. Out: sections, or values of a JSON document.

`contents` is the table of contents; each protocol has a file of its own.
"""
