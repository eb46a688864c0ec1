"""A worker of MQTT that needs longer for each job than for the one before, as one that searches all it has seen.

In: HOST PORT CLIENT_ID TOPIC GROWS_S. Out: JSON lines; it takes TOPIC/job/# and says what is done on TOPIC/done/....
"""

from __future__ import annotations

import json
import signal
import sys
import time
from typing import Any

from paho.mqtt import client as mqtt


def main() -> None:
    """Work until SIGTERM."""
    host, port, client_id, topic, grows_s = sys.argv[1:]
    seen: list[str] = []

    def on_message(client: mqtt.Client, _: Any, message: mqtt.MQTTMessage) -> None:
        seen.append(message.topic)
        time.sleep(0.02 + float(grows_s) * len(seen))
        client.publish(message.topic.replace("/job/", f"/done/{client_id}/"), message.payload, 1)

    def on_connect(client: mqtt.Client, *_: Any) -> None:
        client.subscribe(f"{topic}/job/#", 1)

    def on_subscribe(*_: Any) -> None:
        print(json.dumps({"event": "subscribed", "at": time.time()}), flush=True)

    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=client_id)
    client.on_connect, client.on_message, client.on_subscribe = on_connect, on_message, on_subscribe
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    client.connect(host, int(port), 60)
    client.loop_forever()


if __name__ == "__main__":
    main()
