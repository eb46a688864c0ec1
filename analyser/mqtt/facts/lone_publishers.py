"""Who publishes at a server where nobody subscribes: `mqtt_lone_publishers`, who waits for it at another server.

In: views of `mqtt_active_subscriptions`, `mqtt_connections`, `mqtt_deliveries` and `mqtt_publishes`. Out: STEPS and
ROWS of the table.

Nobody subscribes at a server (address and port) where all connections are seen from their beginning and whole, none
resumed a session, no subscription was granted and no message went to a client. A row is a client that published LEAST
messages or more there for a filter that was in force at another server of the capture, where its subscriber got LEAST
messages of others meanwhile. Servers that have a message in common, or of which one is a client of the other, are
linked, and left out; so are filters that begin with a wildcard, which watch a server.
"""

from __future__ import annotations

from wirewitness.analyser.mqtt.facts.dropped_filters import PATTERN

LEAST = 5
# Of filters that begin alike the oldest are compared with topics, of the clients of a filter those that got most count.
_MOST_FILTERS, _MOST_CLIENTS = 500, 16

STEPS = {
    "unheard_servers": """
        SELECT server_address, server_port
        FROM mqtt_connections WHERE server_address IS NOT NULL
        GROUP BY ALL
        HAVING sum(publishes_from_client) > 0 AND sum(publishes_from_server) = 0 AND sum(gap_bytes) = 0
            AND bool_and(gap_bytes IS NOT NULL AND connect_seen AND NOT coalesce(session_present, false))
            AND (server_address, server_port) NOT IN (
                SELECT (server_address, server_port) FROM mqtt_active_subscriptions
                WHERE server_address IS NOT NULL AND server_port IS NOT NULL)""",
    "unheard_messages": """
        SELECT server_address, server_port, client_id, client_address, client_port, version, topic, payload_crc32,
               payload_bytes, epoch_ns(ts) AS at_ns, message_id
        FROM mqtt_publishes SEMI JOIN unheard_servers USING (server_address, server_port)
        WHERE direction = 'client_to_server' AND topic IS NOT NULL AND client_id <> '' AND NOT coalesce(dup, false)""",
    "unheard_filters": f"""
        SELECT wanted.server_address AS other_server_address, wanted.server_port AS other_server_port,
               wanted.client_id AS other_client_id, wanted.client_address AS other_client_address,
               wanted.topic_filter, {PATTERN} AS pattern,
               CASE WHEN regexp_matches(matching_filter, '[+#]') THEN split_part(matching_filter, '/', 1)
                    ELSE matching_filter END AS head, epoch_ns(wanted.ts) AS from_ns,
               least(coalesce(epoch_ns(ts_until), 9223372036854775807),
                     coalesce(epoch_ns(observed_until), 9223372036854775807)) AS until_ns, wanted.exchange_id
        FROM mqtt_active_subscriptions AS wanted
        JOIN (SELECT flow_id, observed_until FROM mqtt_connections) USING (flow_id)
        WHERE NOT regexp_matches(matching_filter, '^[+#$]') AND EXISTS (FROM unheard_servers)
        QUALIFY row_number() OVER (PARTITION BY wanted.server_address, wanted.server_port, client_id, topic_filter, ts
                                   ORDER BY until_ns DESC, exchange_id) = 1""",
    "unheard_links": "SELECT DISTINCT client_address, server_address, server_port FROM mqtt_connections",
    # Servers that have a message in common, or a connection with each other.
    "unheard_linked": """
        SELECT DISTINCT own.server_address, own.server_port, same.server_address AS other_server_address,
               same.server_port AS other_server_port
        FROM (SELECT DISTINCT server_address, server_port, topic, payload_crc32, payload_bytes FROM unheard_messages
              WHERE payload_bytes >= 2) AS own
        JOIN (SELECT DISTINCT server_address, server_port, topic, payload_crc32, payload_bytes
              FROM mqtt_publishes SEMI JOIN unheard_messages USING (topic, payload_crc32, payload_bytes)) AS same
            USING (topic, payload_crc32, payload_bytes)
        UNION
        SELECT own.server_address, own.server_port, link.server_address, link.server_port
        FROM unheard_servers AS own JOIN unheard_links AS link ON link.client_address = own.server_address
        UNION
        SELECT own.server_address, own.server_port, link.server_address, link.server_port
        FROM unheard_servers AS own JOIN unheard_links AS mine USING (server_address, server_port)
        JOIN unheard_links AS link ON mine.client_address = link.server_address""",
    # Only what begins alike is matched: a filter without wildcards is equal, another one has the first level.
    "unheard_pairs": f"""
        SELECT topic, other_server_address, other_server_port, topic_filter
        FROM (SELECT DISTINCT topic, unnest([topic, split_part(topic, '/', 1)]) AS head FROM unheard_messages)
        JOIN (SELECT head, other_server_address, other_server_port, topic_filter, pattern
              FROM unheard_filters
              GROUP BY head, other_server_address, other_server_port, topic_filter, pattern
              QUALIFY row_number() OVER (
                  PARTITION BY head ORDER BY min(from_ns), other_server_address, other_server_port, topic_filter)
                  <= {_MOST_FILTERS}) USING (head)
        WHERE regexp_matches(topic, pattern)""",
    "unheard_got": f"""
        SELECT server_address AS other_server_address, server_port AS other_server_port,
               subscriber_client_id AS other_client_id, topic_filter, count(DISTINCT message_id) AS got,
               min(epoch_ns(ts)) AS got_first_ns, max(epoch_ns(ts)) AS got_last_ns
        FROM mqtt_deliveries
        WHERE ts_delivered IS NOT NULL AND topic_filter IN (SELECT topic_filter FROM unheard_pairs)
        GROUP BY server_address, server_port, subscriber_client_id, topic_filter
        HAVING count(DISTINCT message_id) >= {LEAST}
        QUALIFY row_number() OVER (
            PARTITION BY server_address, server_port, topic_filter ORDER BY count(DISTINCT message_id) DESC,
            subscriber_client_id) <= {_MOST_CLIENTS}""",
    "unheard_rows": f"""
        SELECT DISTINCT ON (own.server_address, own.server_port, own.client_id)
               own.server_address, own.server_port, own.client_id, own.client_address, own.other_server_address,
               own.other_server_port, own.other_client_id, other_client_address, own.topic_filter, exchange_id, got,
               count(*) AS messages, count(DISTINCT topic) AS topics, min(topic) AS topic, min(at_ns) AS first_ns,
               max(at_ns) AS last_ns, arg_min(message_id, at_ns) AS message_id,
               arg_max(message_id, at_ns) AS last_message_id, arg_max(client_port, at_ns) AS client_port,
               arg_max(version, at_ns) AS version
        FROM (FROM unheard_messages JOIN unheard_pairs USING (topic)
              JOIN unheard_got USING (other_server_address, other_server_port, topic_filter)
              ANTI JOIN unheard_linked
                  USING (server_address, server_port, other_server_address, other_server_port)) AS own
        ASOF JOIN unheard_filters AS wanted ON wanted.other_server_address = own.other_server_address
            AND wanted.other_server_port = own.other_server_port AND wanted.other_client_id = own.other_client_id
            AND wanted.topic_filter = own.topic_filter AND at_ns >= from_ns
        WHERE at_ns <= until_ns
        GROUP BY ALL HAVING count(*) >= {LEAST} AND max(got_last_ns) > min(at_ns) AND min(got_first_ns) < max(at_ns)
        ORDER BY got DESC, own.other_client_id, own.topic_filter, messages DESC, first_ns""",
}
ROWS = """
    SELECT make_timestamp_ns(first_ns)::TIMESTAMPTZ_NS AS ts, make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last,
           client_id, client_address, client_port, version, topic, topics, messages, topic_filter,
           other_server_address, other_server_port, other_client_id, other_client_address, got,
           EXISTS (FROM unheard_links AS there
                   WHERE there.server_address = other_server_address AND there.server_port = other_server_port
                       AND there.client_address = unheard_rows.client_address) AS shares_address,
           message_id, last_message_id, exchange_id, server_address, server_port
    FROM unheard_rows ORDER BY first_ns, client_id"""
ASKS = "(SELECT count(DISTINCT (server_address, server_port)) > 1 FROM mqtt_connections)"
