"""What any protocol shares: rules about captures, TCP, TLS and connections.

In: views of the registered tables. Out: findings.
"""
