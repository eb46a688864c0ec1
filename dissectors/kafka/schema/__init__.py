"""The wire format as data. In: `.kafka` files. Out: decoders, slow readers with byte spans, names of APIs."""
