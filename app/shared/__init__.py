"""What commands, dashboard and contracts share: options, errors, names, how captures are read.

In: what a person typed. Out: options, an analysis, or one clear line.
"""
