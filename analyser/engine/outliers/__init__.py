"""What stands out: one comparison for all populations of likes, whatever the protocol.

In: a connection with views of finished tables, the declarations of protocols (`Population`). Out: the rows of the table
`stands_out`. Start at `populations.py`, then `comparison.py` and `table.py`.
"""
