"""Bytes that group members send each other. In: a blob. Out: subscriptions, assignments, states; or JSON."""
