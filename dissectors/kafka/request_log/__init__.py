"""Lines of the broker's request log. In: the JSON of a line. Out: the rows that the exchange gives on the wire, too.

`entry.py` reads a line, `values.py` makes of its bodies what decoders make of bytes, `decoder.py` makes the rows.
"""
