"""The scenarios with servers that speak MongoDB's protocol."""
