"""The report: which sections there are, in which order, and the JSON document.

In: an analysis. Out: sections, or values of a JSON document.
"""
