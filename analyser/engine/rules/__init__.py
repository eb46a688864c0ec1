"""What a rule is, and how rules get their rows.

In: views of tables with facts. Out: findings, and rules that failed. Which rules there are,
`analyser/analysis/all_rules.py` lists.
"""
