"""MongoDB in reports: questions, sections, causes of `why`.

In: a source of tables. Out: answers, sections, causes.
"""
