"""Contracts of the wire: what traffic must be like, in the user's words, and whether a capture keeps to it.

In: rules (TOML, of a file or ready-made) and an analysis. Out: for each expectation whether it holds, with the evidence
where it does not. `wirewitness expect` and the plugin for pytest show it.

    rules.py        TOML to expectations; what is wrong with it in one line
    comparison.py   `<= 700`
    kinds.py        the kinds of expectations, each with the SQL that asks
    bound.py        SQL of rules checked before a capture is read
    checking.py     expectations over an analysis: ok, FAILED or nothing to check
    evidence.py     rows with the packets that they are from
    told.py         outcomes as text, JSON and JUnit's XML
    ready.py        the contracts that come along, in ready/
    capturing.py    the program that captures for a test; the plugin for pytest itself is `wirewitness_pytest.py`
"""
