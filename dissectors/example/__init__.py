"""The worked example of docs/adding-a-protocol.md: a framed RPC protocol whose answers come in order."""
