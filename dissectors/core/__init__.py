"""What every protocol shares: the contract, the row fields, limits, framing by length."""
