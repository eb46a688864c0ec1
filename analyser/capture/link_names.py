"""Names of link types that are not decoded. In: a number. Out: its name. Source: tcpdump.org/linktypes.html."""

LINK_NAMES = {
    3: "AX.25",
    6: "Token Ring",
    7: "ARCNET",
    10: "FDDI",
    11: "ATM LLC",
    100: "ATM RFC 1483",
    105: "IEEE 802.11",
    107: "Frame Relay",
    109: "OpenBSD IPsec",
    117: "OpenBSD pflog",
    119: "IEEE 802.11 with Prism header",
    127: "IEEE 802.11 with radiotap header",
    138: "IP over FireWire",
    163: "IEEE 802.11 with AVS header",
    187: "Bluetooth HCI",
    189: "Linux USB",
    192: "Per-Packet Information",
    195: "IEEE 802.15.4",
    197: "Extensible Record Format",
    201: "Bluetooth HCI with direction",
    220: "Linux USB with padding",
    224: "Fibre Channel",
    227: "CAN bus",
    230: "IEEE 802.15.4 without check sequence",
    239: "Linux NFLOG",
    247: "InfiniBand",
    249: "USBPcap",
    251: "Bluetooth Low Energy",
    253: "Linux netlink",
    258: "Apple PKTAP",
    **{147 + number: f"private use {number}" for number in range(16)},
}


def link_name(number: int) -> str:
    """`105 IEEE 802.11`, or only the number where no name is known."""
    return f"{number} {LINK_NAMES[number]}" if number in LINK_NAMES else str(number)
