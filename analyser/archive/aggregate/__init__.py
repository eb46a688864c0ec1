"""Tables made from tables. In: the parts of a dataset. Out: context, aggregates and findings, hour by hour."""
