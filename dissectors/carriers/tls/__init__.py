"""TLS for reading along: both sides' hellos and the keys that somebody logged in, the bytes inside the records out."""
