"""Byte streams inside byte streams, between TCP and a protocol. The contract is dissectors/core/carrier.py."""
