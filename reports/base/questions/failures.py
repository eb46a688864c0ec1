"""Requests that got no answer although one was due, as SQL over the selected rows.

In: `exchanges.answer_due`, which says of each request whether one was. Out: conditions.
"""

from __future__ import annotations

# Of rows of exchanges: what NO ANSWER counts.
IS_UNANSWERED = "status = 'unanswered' and answer_due"
UNANSWERED = f"""
    select exchange_id, protocol, cluster_id, operation, client_id, client_address, ts
    from exchanges where {IS_UNANSWERED}"""
