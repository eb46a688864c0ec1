"""What runs facts, rules and incidents of every protocol, and knows none of them.

In: views of the registered tables. Out: views with columns added, findings, and which findings belong together.
"""
