"""What a TCP header says in numbers (RFC 9293, 3.1): flags, and the room of sequence numbers."""

FIN, SYN, RST, ACK = 1, 2, 4, 16
# Sequence numbers count modulo 2**32.
MASK = (1 << 32) - 1
