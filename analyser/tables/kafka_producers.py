"""Tables about Kafka's producers that are made from other tables; see `analyser/kafka/facts/producers_stage.py`."""

from __future__ import annotations

from wirewitness.analyser.tables.model import Column, ColumnSource, Table
from wirewitness.analyser.tables.shared import milliseconds, number, text, time, ts_column

_SOURCE: ColumnSource = "context"


_CLUSTER = text("cluster_id", "cluster of the server, by its own name or by servers named together")
_CLIENT = (text("client_id", "client id of the producer"), text("client_address", "IP address of the producer"))
_TOPIC = (
    text("topic", "topic name, else its id"),
    number("partition", "partition index", nullable=False),
)
_PRODUCER = (number("producer_id", "producer id"), number("producer_epoch", "producer epoch"))

_SPANS = Table(
    "kafka_transaction_spans",
    "one row per transaction of a producer, put together from its requests on all connections",
    (
        text("exchange_id", "first request seen of it"),
        ts_column("time of that request", _SOURCE),
        _CLUSTER,
        text("transactional_id", "transactional id; null where no request in the capture names it"),
        *_PRODUCER,
        *_CLIENT,
        time("ts_started", "the same as ts where the producer was seen before it; null: it may have begun earlier"),
        time("ts_last", "last request of it, or response to the request that ended it", nullable=False),
        time("ts_ended", "when it was decided; null while open or unknown"),
        Column(
            "outcome",
            "string",
            "committed, aborted, open, or unknown: an EndTxn without a clear response, or a later transaction of this "
            "producer without an EndTxn for this one in the capture",
            _SOURCE,
            nullable=False,
        ),
        text("ended_by", "end_txn, init_producer_id (aborts what was open), write_txn_markers"),
        text("ended_exchange_id", "request that ended it"),
        text("ended_client_id", "client id of that request"),
        text("ended_client_address", "IP address of that client"),
        text("partitions", "partitions written or added, as topic-partition, comma separated, at most 100"),
        number("partitions_count", "how many these are"),
        number("batches_count", "record batches written in it and not refused"),
        number("records_count", "records in them"),
        text("group_id", "consumer group whose offsets are part of it"),
        number("transaction_timeout_ms", "timeout that its InitProducerId asked for", "ms"),
        number("end_attempts", "EndTxn requests for it"),
        number("end_error_code", "error of the last of them; null: none, or no response"),
        time("observed_until", "last transactional request, batch or read of its cluster in the capture"),
        text("flow_id", "flow of the first request seen of it"),
        text("file", "file of that request"),
        number("request_packet", "packet that completes it: number in its file, from 1"),
    ),
    ("ts", "exchange_id", "producer_id", "producer_epoch"),
    "kafka",
)

_REFUSED = Table(
    "kafka_refused_batches",
    "one row per record batch of a Produce that the broker refused, and what became of it",
    (
        text("exchange_id", "the exchange this row belongs to (exchanges.exchange_id)"),
        ts_column("time of the packet that completes the request", _SOURCE),
        _CLUSTER,
        *_CLIENT,
        text("server_address", "IP address of the broker that refused it"),
        number("server_port", "its port"),
        *_TOPIC,
        number("records_count", "records in the batch"),
        number("batch_bytes", "size of the batch", "bytes"),
        *_PRODUCER,
        number("base_sequence", "sequence of the first record"),
        number("base_timestamp", "time of the first record as the producer sets it, Unix ms", "ms"),
        number("acks", "-1 all in-sync replicas, 1 leader, 0 none"),
        Column("transactional", "bool", "batch is part of a transaction", _SOURCE),
        text("transactional_id", "transactional id of its producer; null without transactions"),
        number("error_code", "protocol error code", nullable=False),
        text("error_name", "the code's name in the protocol's documents"),
        time("ts_stored", "when the same batch was sent again and accepted; null: not in the capture"),
        time("ts_accepted_before", "this client's last accepted batch of the partition before it"),
        time("ts_accepted_after", "this client's first accepted batch of the partition after it"),
        number("sequence_before", "sequence that had to come next after the last accepted batch of this producer id"),
        number("leader_id", "leader of the partition, as a response of about that time says"),
        Column("replicas", "int64_list", "brokers that hold a replica, as that response says", _SOURCE),
        Column("isr", "int64_list", "replicas in sync, as that response says", _SOURCE),
        text("missing", "replicas that are not in sync, as id host:port, comma separated"),
        text("flow_id", "flow of the request"),
        text("file", "file of the request"),
        number("request_packet", "packet that completes the request: number in its file, from 1"),
    ),
    ("ts", "exchange_id", "topic", "partition", "base_sequence"),
    "kafka",
)

_REPEATED = Table(
    "kafka_repeated_batches",
    "one row per record batch that is twice in the log: sent again under a new epoch or without a producer id although "
    "it was stored",
    (
        text("exchange_id", "the Produce that stored it first"),
        ts_column("time of that request", _SOURCE),
        _CLUSTER,
        *_CLIENT,
        *_TOPIC,
        number("records_count", "records in the batch"),
        *_PRODUCER,
        number("base_sequence", "sequence of the first record then"),
        number("error_code", "the response then; null: nothing"),
        time("ts_response", "time of that response; null: none"),
        number("base_offset", "offset of its first record; null where nothing shows it"),
        text("again_exchange_id", "the Produce that stored it again"),
        time("ts_again", "time of that request", nullable=False),
        number("again_epoch", "producer epoch then", nullable=False),
        number("again_offset", "offset of its first record there"),
        text("again_flow_id", "flow of the second Produce"),
        text("flow_id", "flow of the first Produce"),
        text("file", "file of the first Produce"),
        number("request_packet", "packet that completes the first Produce: number in its file, from 1"),
        text("again_file", "file of the second Produce"),
        number("again_packet", "packet that completes the second Produce"),
    ),
    ("ts", "exchange_id", "topic", "partition", "base_sequence"),
    "kafka",
)

_RECORD_TIMES = Table(
    "kafka_record_times",
    "one row per client and topic that it writes: how far its record times are off packet time; none where all are "
    "within five minutes",
    (
        text("exchange_id", "its first Produce of the topic"),
        ts_column("time of that request", _SOURCE),
        time("ts_last", "time of its last one", nullable=False),
        _CLUSTER,
        *_CLIENT,
        text("topic", "topic name, else its id"),
        number("batches_count", "batches that were not refused", nullable=False),
        number("records_count", "records in them", nullable=False),
        number("appended_count", "batches whose records got the broker's time instead (LogAppendTime)", nullable=False),
        number("first_timestamp", "time of the first record of its first batch, Unix ms", "ms"),
        number("last_timestamp", "the same of its last batch", "ms"),
        milliseconds("later_ms", "packet time minus the time of a batch's first record, median; below 0: in future"),
        milliseconds("later_low_ms", "the same, of which 5 % of batches are below"),
        milliseconds("later_high_ms", "the same, of which 5 % of batches are above"),
        text("flow_id", "flow of the first Produce"),
        text("file", "file of the first Produce"),
        number("request_packet", "packet that completes it: number in its file, from 1"),
    ),
    ("ts", "exchange_id", "topic"),
    "kafka",
)

_VALUE_ROUNDS = Table(
    "kafka_value_rounds",
    "one row per client, topic, and topic that it had from there what it writes: values that came back to where they "
    "were, 20 times or more",
    (
        text("exchange_id", "the Produce of the first such copy"),
        ts_column("time of that request", _SOURCE),
        time("ts_last", "time of the Produce of the last one", nullable=False),
        _CLUSTER,
        *_CLIENT,
        text("topic", "topic that it writes to, else its id"),
        text("from_cluster_id", "cluster from which its address had read the value right before"),
        text("from_topic", "topic from which it had, else its id"),
        number("values_count", "different values, by what the first record of a batch says", nullable=False),
        number("copies_count", "batches that it wrote after it had read the copy before", nullable=False),
        number("rounds_most", "of the value that came most often", nullable=False),
        number("records_count", "records in these batches", nullable=False),
        number("other_records_read", "records that its address read from topics outside of any ring", nullable=False),
        number("from_records_read", "records that its address read from from_topic in all", nullable=False),
        milliseconds("handled_ms", "from the response with the copy before to the next Produce, median"),
        milliseconds("way_ms", "from the Produce of the copy before to that response, median"),
        text("file", "file of the first copy"),
        number("request_packet", "packet that completes it: number in its file, from 1"),
    ),
    ("ts", "exchange_id", "topic"),
    "kafka",
)

_VALUES_TWICE = Table(
    "kafka_values_twice",
    "one row per topic and client, or pair of clients, whose values are in it twice: a run that was done again, or two "
    "writers that read the same topic",
    (
        text("exchange_id", "the Produce of the first value that is there twice"),
        ts_column("time of that request", _SOURCE),
        time("ts_until", "time of the Produce of the last one by this client, the first time", nullable=False),
        time("ts_again", "time of the Produce that wrote such a value again first", nullable=False),
        time("ts_last", "time of the last one that did", nullable=False),
        _CLUSTER,
        *_CLIENT,
        text("again_client_id", "client id of who wrote them again; the same client: a run that was done again"),
        text("again_client_address", "its IP address"),
        text("topic", "topic name, else its id"),
        text("from_topic", "topic from which both had them; null: a run that was done again"),
        number("values_count", "values that are there twice, by what the first record of a batch says", nullable=False),
        number("batches_count", "batches of the client, of two of the one with fewer, in this topic", nullable=False),
        number("records_count", "records in the batches of both times", nullable=False),
        text("again_exchange_id", "the Produce that wrote such a value again first"),
        text("file", "file of the first Produce"),
        number("request_packet", "packet that completes it: number in its file, from 1"),
    ),
    ("ts", "exchange_id", "topic"),
    "kafka",
)

_TOPIC_WRITERS = Table(
    "kafka_topic_writers",
    "one row per client and topic that it writes to: how it fills its batches, their codecs, and what their first "
        "records are",
    (
        text("exchange_id", "its first Produce to this topic"),
        ts_column("time of that request", _SOURCE),
        time("ts_last", "time of its last one", nullable=False),
        _CLUSTER,
        *_CLIENT,
        text("topic", "topic name, else its id"),
        number("batches_count", "batches that were not refused", nullable=False),
        number("records_count", "records in them"),
        number("batch_bytes", "size of its batches, median"),
        milliseconds("fill_ms", "from the first to the last record of a batch by their times, median"),
        milliseconds("pace_ms", "from one batch to its next one for the same partition, median"),
        number("known_count", "batches whose first record is known", nullable=False),
        text("first_kind", "first_value_kind of the first of these"),
        text("last_kind", "of the last one"),
        number("kind_turns", "times that it changed from one of them to the next", nullable=False),
        time("ts_kind_turned", "when it did first"),
        number("kind_after", "of these batches from then on"),
        text("kind_turned_exchange_id", "the Produce that did"),
        Column("first_keyed", "bool", "the first record of the first of these batches has a key", _SOURCE),
        Column("last_keyed", "bool", "likewise of the last one", _SOURCE),
        number("key_turns", "times that keys began or ended from one of these batches to the next", nullable=False),
        time("ts_key_turned", "when they did first"),
        number("key_after", "of these batches from then on"),
        text("key_turned_exchange_id", "the Produce that did"),
        text("first_codec", "codec of its first batch"),
        text("last_codec", "of its last one"),
        number("codec_turns", "times that it changed from one batch to the next", nullable=False),
        time("ts_codec_turned", "when it did first"),
        number("codec_after", "batches from then on"),
        text("codec_turned_exchange_id", "the Produce that did"),
        number("record_bytes_before", "bytes of batches for each record, until then"),
        number("record_bytes_after", "from then on"),
        number("batch_records_before", "records of a batch until then, median"),
        number("batch_records_after", "from then on"),
        text("last_exchange_id", "its last Produce to this topic"),
        text("file", "file of the first Produce"),
        number("request_packet", "packet that completes it: number in its file, from 1"),
    ),
    ("ts", "exchange_id", "topic"),
    "kafka",
)

_KEY_PLACES = Table(
    "kafka_key_places",
    "one row per client and topic in which others write the same keys at the same time: how many of them it puts into "
    "other partitions than they do",
    (
        text("exchange_id", "its first Produce of a key that lies elsewhere, else of a shared key"),
        ts_column("time of that request", _SOURCE),
        time("ts_last", "time of its last Produce of a shared key", nullable=False),
        _CLUSTER,
        *_CLIENT,
        text("topic", "topic name, else its id"),
        number("keys_count", "keys, of the first records of batches, that it always puts into one partition and that "
               "others write too", nullable=False),
        number("apart_count", "of these, keys for which more others agree on another partition, or as many that began "
               "before", nullable=False),
        number("writers_count", "clients that share keys in this topic, this one included", nullable=False),
        number("partitions_count", "partitions that it writes these keys to", nullable=False),
        text("file", "file of that Produce"),
        number("request_packet", "packet that completes it: number in its file, from 1"),
    ),
    ("ts", "exchange_id", "topic"),
    "kafka",
)  # fmt: skip

_ABORTED_READS = Table(
    "kafka_aborted_reads",
    "one row per client, group and topic: records of aborted transactions that it was given, since it reads "
    "uncommitted ones too",
    (
        text("exchange_id", "its first Fetch whose response has such records"),
        ts_column("time of that request", _SOURCE),
        time("ts_last", "time of the last one", nullable=False),
        _CLUSTER,
        text("client_id", "client id of the consumer"),
        text("client_address", "IP address of the consumer"),
        text("group_id", "consumer group; null without one"),
        text("topic", "topic name, else its id"),
        number("aborted_count", "records of aborted transactions that it was given", nullable=False),
        number("records_count", "records that it was given of this topic", nullable=False),
        number("committed_readers", "clients that read only committed records of this topic", nullable=False),
        text("transactional_id", "of an aborted transaction that it was given records of"),
        text("last_exchange_id", "its last Fetch whose response has such records"),
        text("file", "file of the first Fetch"),
        number("request_packet", "packet that completes it: number in its file, from 1"),
    ),
    ("ts", "exchange_id", "topic"),
    "kafka",
)

_STABLE_OFFSETS = Table(
    "kafka_stable_offset_waits",
    "one row per last stable offset that stayed below the high watermark for a second or more",
    (
        text("exchange_id", "first Fetch whose response shows it"),
        ts_column("time of that response", _SOURCE),
        _CLUSTER,
        *_TOPIC,
        number("last_stable_offset", "the offset that remained", nullable=False),
        number("high_watermark", "the high watermark in the last response that shows it", nullable=False),
        time("ts_last", "time of that response", nullable=False),
        time("ts_moved", "first response after it with a greater last stable offset; null: none in the capture"),
        text("last_exchange_id", "last Fetch whose response shows it"),
        number("fetches_count", "responses that show it"),
        text("groups", "groups of the clients that read committed records and got it, comma separated, at most 20"),
        text("readers", "those clients, as client id at address, comma separated, at most 20"),
        number("readers_count", "how many these are"),
        *_PRODUCER,
        text("transactional_id", "of the open transaction: whose batch has this offset; null where it is not known"),
        text("client_id", "client id of its producer"),
        text("client_address", "IP address of its producer"),
        time("ts_written", "when that batch was written"),
        time("observed_until", "as in kafka_transaction_spans"),
        text("flow_id", "flow of the first Fetch"),
        text("file", "file of the first Fetch"),
        number("request_packet", "packet of the first Fetch: number in its file, from 1"),
    ),
    ("ts", "exchange_id", "topic", "partition", "last_stable_offset"),
    "kafka",
)

KAFKA_PRODUCER_TABLES = (
    _SPANS,
    _REFUSED,
    _REPEATED,
    _RECORD_TIMES,
    _VALUE_ROUNDS,
    _VALUES_TWICE,
    _TOPIC_WRITERS,
    _KEY_PLACES,
    _ABORTED_READS,
    _STABLE_OFFSETS,
)
