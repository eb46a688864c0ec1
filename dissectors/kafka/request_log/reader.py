"""The line by which Kafka's request log enters the table of contents."""

from __future__ import annotations

from wirewitness.dissectors.core.log_reader import LogReader
from wirewitness.dissectors.kafka.request_log.conversation import LoggedKafka
from wirewitness.dissectors.kafka.request_log.entry import MEANINGS, entry
from wirewitness.dissectors.kafka.request_log.inspect import inspect_line

READER = LogReader(entry, LoggedKafka, MEANINGS, inspect_line)
