"""Sends commands to the database admin: `mongo_order.py URI COMMAND...`, each as JSON.

For orders to a test server that no capture is to show: they run on the server's own host, and so cross no wire.
"""

from __future__ import annotations

import json
import sys

from pymongo import MongoClient


def main() -> None:
    """Send them in turn."""
    uri, *commands = sys.argv[1:]
    client: MongoClient[dict[str, object]] = MongoClient(uri)
    for command in commands:
        client.admin.command(json.loads(command))
    client.close()


if __name__ == "__main__":
    main()
