"""One folder for each protocol: its questions, its sections of the report, its causes of `why`.

In: a source of tables. Out: answers, sections, causes.
"""
