"""What stands out in Kafka.

In: nothing. Out: POPULATIONS, over Kafka's finished tables.
"""

from __future__ import annotations

from wirewitness.analyser.kafka.facts import group_populations, topic_populations

POPULATIONS = (*group_populations.POPULATIONS, *topic_populations.POPULATIONS)
