"""Settings of Kafka that are known to hold no secret: those of its documentation, but for the ones of type PASSWORD.

In: the name of a setting. Out: whether its value may be shown. Of names that nobody knows (plugins, connectors, what
was written into the wrong field) it may not. Brokers, topics, groups, client metrics, quotas, producers, consumers,
admin clients, Streams, Connect with its connectors and MirrorMaker, as ConfigDef of Kafka 4.1 and 4.3 has them, and
what Kafka 4 removed. `sasl.kerberos.kinit.cmd` is a command line of any content, so it is not among them.
"""

from __future__ import annotations

import re

# In front of a setting of the broker that is for one listener and mechanism, or of Connect's and MirrorMaker's clients.
_FRONT = re.compile(
    r"(?:listener\.name\.[^.]{1,255}\.(?:(?:plain|scram-sha-256|scram-sha-512|gssapi|oauthbearer)\.)?|"
    r"(?:main\.|global\.|restore\.)?(?:producer|consumer|admin)\.(?:override\.)?|"
    r"(?:connector\.client|source|target)\.|rlmm\.config\.|rsm\.config\.)"
)
_DOCUMENTED = """
acceptable.recovery.lag access.control.allow.methods access.control.allow.origin acks
add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms admin.listeners admin.timeout.ms
advertised.host.name advertised.listeners advertised.port allow.auto.create.topics allow.os.group.write.access
alter.config.policy.class.name alter.log.dirs.replication.quota.window.num
alter.log.dirs.replication.quota.window.size.seconds application.id application.server authorizer.class.name
auto.commit.interval.ms auto.create.topics.enable auto.include.jmx.reporter auto.leader.rebalance.enable
auto.offset.reset background.threads batch.size bootstrap.controllers bootstrap.servers broker.heartbeat.interval.ms
broker.id broker.id.generation.enable broker.rack broker.session.timeout.ms buffer.memory
buffered.records.per.partition built.in.metrics.version cache.max.bytes.buffering check.crcs cleanup.policy
client.dns.lookup client.id client.quota.callback.class client.rack commit.interval.ms compression.gzip.level
compression.lz4.level compression.type compression.zstd.level config.action.reload config.properties.exclude
config.property.filter.class config.providers config.storage.replication.factor config.storage.topic connect.protocol
connection.failed.authentication.delay.ms connection_creation_rate connections.max.idle.ms connections.max.reauth.ms
connector.class connector.client.config.override.policy connector.plugin.version consumer.heartbeat.interval.ms
consumer.poll.timeout.ms consumer.session.timeout.ms consumer_byte_rate control.plane.listener.name
controlled.shutdown.enable controller.listener.names controller.performance.always.log.threshold.ms
controller.performance.sample.period.ms controller.quorum.append.linger.ms controller.quorum.auto.join.enable
controller.quorum.bootstrap.servers controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms
controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes controller.quorum.fetch.timeout.ms
controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms controller.quorum.voters
controller.quota.window.num controller.quota.window.size.seconds controller.socket.timeout.ms controller_mutation_rate
cordoned.log.dirs create.topic.policy.class.name default.api.timeout.ms default.client.supplier
default.deserialization.exception.handler default.dsl.store default.key.serde default.list.key.serde.inner
default.list.key.serde.type default.list.value.serde.inner default.list.value.serde.type
default.production.exception.handler default.replication.factor default.timestamp.extractor default.value.serde
delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms delegation.token.max.lifetime.ms
delete.records.purgatory.purge.interval.requests delete.retention.ms delete.topic.enable delivery.timeout.ms
deserialization.exception.handler dsl.store.format dsl.store.suppliers.class early.start.listeners
emit.offset-syncs.enabled enable.auto.commit enable.idempotence enable.metrics.push enabled
ensure.explicit.internal.resource.naming errors.dead.letter.queue.topic.name
errors.deadletterqueue.context.headers.enable errors.deadletterqueue.topic.name
errors.deadletterqueue.topic.replication.factor errors.log.enable errors.log.include.messages
errors.retry.delay.max.ms errors.retry.timeout errors.tolerance exactly.once.source.support exactly.once.support
exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes fetch.purgatory.purge.interval.requests
file.delete.delay.ms flush.messages flush.ms follower.fetch.last.tiered.offset.enable
follower.replication.throttled.rate follower.replication.throttled.replicas forwarding.admin.class
group.consumer.assignment.interval.ms group.consumer.assignors group.consumer.heartbeat.interval.ms
group.consumer.max.assignment.interval.ms group.consumer.max.heartbeat.interval.ms
group.consumer.max.session.timeout.ms group.consumer.max.size group.consumer.migration.policy
group.consumer.min.assignment.interval.ms group.consumer.min.heartbeat.interval.ms
group.consumer.min.session.timeout.ms group.consumer.regex.refresh.interval.ms group.consumer.session.timeout.ms
group.coordinator.append.linger.ms group.coordinator.background.threads group.coordinator.cached.buffer.max.bytes
group.coordinator.rebalance.protocols group.coordinator.threads group.id group.initial.rebalance.delay.ms
group.instance.id group.max.session.timeout.ms group.max.size group.min.session.timeout.ms group.protocol
group.remote.assignor group.share.assignment.interval.ms group.share.assignors group.share.delivery.count.limit
group.share.enable group.share.heartbeat.interval.ms group.share.initialize.retry.interval.ms
group.share.max.assignment.interval.ms group.share.max.delivery.count.limit group.share.max.heartbeat.interval.ms
group.share.max.partition.max.record.locks group.share.max.record.lock.duration.ms group.share.max.session.timeout.ms
group.share.max.share.sessions group.share.max.size group.share.min.assignment.interval.ms
group.share.min.delivery.count.limit group.share.min.heartbeat.interval.ms group.share.min.partition.max.record.locks
group.share.min.record.lock.duration.ms group.share.min.session.timeout.ms group.share.partition.max.record.locks
group.share.persister.class.name group.share.record.lock.duration.ms group.share.session.timeout.ms
group.streams.assignment.interval.ms group.streams.heartbeat.interval.ms group.streams.initial.rebalance.delay.ms
group.streams.max.assignment.interval.ms group.streams.max.heartbeat.interval.ms group.streams.max.session.timeout.ms
group.streams.max.size group.streams.max.standby.replicas group.streams.min.assignment.interval.ms
group.streams.min.heartbeat.interval.ms group.streams.min.session.timeout.ms group.streams.num.standby.replicas
group.streams.session.timeout.ms header.converter header.converter.plugin.version heartbeat.interval.ms
heartbeats.replication.enabled host.name index.interval.bytes initial.broker.registration.timeout.ms
inter.broker.listener.name inter.broker.protocol.version inter.worker.key.generation.algorithm inter.worker.key.size
inter.worker.key.ttl.ms inter.worker.signature.algorithm inter.worker.verification.algorithms interceptor.classes
internal.leave.group.on.close internal.metadata.delete.delay.millis internal.metadata.log.segment.bytes
internal.metadata.max.batch.size.in.bytes internal.metadata.max.fetch.size.in.bytes internal.segment.bytes
internal.throw.on.fetch.stable.offset.unsupported interval.ms isolation.level kafka.metrics.polling.interval.secs
kafka.metrics.reporters key.converter key.converter.plugin.version key.deserializer key.serializer
leader.imbalance.check.interval.seconds leader.replication.throttled.rate leader.replication.throttled.replicas
linger.ms listener.security.protocol.map listeners local.retention.bytes local.retention.ms log.cleaner.backoff.ms
log.cleaner.dedupe.buffer.size log.cleaner.delete.retention.ms log.cleaner.enable log.cleaner.io.buffer.load.factor
log.cleaner.io.buffer.size log.cleaner.io.max.bytes.per.second log.cleaner.max.compaction.lag.ms
log.cleaner.min.cleanable.ratio log.cleaner.min.compaction.lag.ms log.cleaner.threads log.cleanup.policy log.dir
log.dir.failure.timeout.ms log.dirs log.flush.interval.messages log.flush.interval.ms
log.flush.offset.checkpoint.interval.ms log.flush.scheduler.interval.ms log.flush.start.offset.checkpoint.interval.ms
log.index.interval.bytes log.index.size.max.bytes log.initial.task.delay.ms log.local.retention.bytes
log.local.retention.ms log.message.downconversion.enable log.message.format.version log.message.timestamp.after.max.ms
log.message.timestamp.before.max.ms log.message.timestamp.difference.max.ms log.message.timestamp.type log.preallocate
log.retention.bytes log.retention.check.interval.ms log.retention.hours log.retention.minutes log.retention.ms
log.roll.hours log.roll.jitter.hours log.roll.jitter.ms log.roll.ms log.segment.bytes log.segment.delete.delay.ms
log.summary.interval.ms match max.block.ms max.compaction.lag.ms max.connection.creation.rate max.connections
max.connections.per.ip max.connections.per.ip.overrides max.in.flight.requests.per.connection
max.incremental.fetch.session.cache.slots max.message.bytes max.partition.fetch.bytes max.poll.interval.ms
max.poll.records max.request.partition.size.limit max.request.size max.task.idle.ms max.warmup.replicas
message.downconversion.enable message.format.version message.max.bytes message.timestamp.after.max.ms
message.timestamp.before.max.ms message.timestamp.difference.max.ms message.timestamp.type metadata.log.dir
metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms metadata.log.segment.bytes
metadata.log.segment.ms metadata.max.age.ms metadata.max.idle.interval.ms metadata.max.idle.ms
metadata.max.retention.bytes metadata.max.retention.ms metadata.recovery.rebootstrap.trigger.ms
metadata.recovery.strategy metric.names.formats metric.reporters metrics metrics.num.samples metrics.recording.level
metrics.sample.window.ms min.cleanable.dirty.ratio min.compaction.lag.ms min.insync.replicas node.id num.io.threads
num.network.threads num.partitions num.recovery.threads.per.data.dir num.replica.alter.log.dirs.threads
num.replica.fetchers num.standby.replicas num.stream.threads offset-syncs.topic.location
offset-syncs.topic.replication.factor offset.flush.interval.ms offset.flush.timeout.ms offset.lag.max
offset.metadata.max.bytes offset.storage.partitions offset.storage.replication.factor offset.storage.topic
offsets.commit.required.acks offsets.commit.timeout.ms offsets.load.buffer.size offsets.retention.check.interval.ms
offsets.retention.minutes offsets.storage.topic offsets.topic.compression.codec offsets.topic.num.partitions
offsets.topic.replication.factor offsets.topic.segment.bytes partition.assignment.strategy
partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class partitioner.ignore.keys
password.encoder.cipher.algorithm password.encoder.iterations password.encoder.key.length
password.encoder.keyfactory.algorithm plugin.discovery plugin.path poll.ms port preallocate predicates
principal.builder.class probing.rebalance.interval.ms process.roles processing.exception.handler
processing.exception.handler.global.enabled processing.guarantee processor.wrapper.class
producer.id.expiration.check.interval.ms producer.id.expiration.ms producer.purgatory.purge.interval.requests
producer_byte_rate production.exception.handler queued.max.request.bytes queued.max.requests quota.window.num
quota.window.size.seconds rack.aware.assignment.non_overlap_cost rack.aware.assignment.strategy
rack.aware.assignment.tags rack.aware.assignment.traffic_cost rebalance.timeout.ms receive.buffer.bytes
reconnect.backoff.max.ms reconnect.backoff.ms refresh.topics.enabled refresh.topics.interval.seconds
remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms remote.log.copy.disable remote.log.delete.on.disable
remote.log.index.file.cache.total.size.bytes remote.log.index.file.cache.ttl.ms
remote.log.manager.copier.thread.pool.size remote.log.manager.copy.max.bytes.per.second
remote.log.manager.copy.quota.window.num remote.log.manager.copy.quota.window.size.seconds
remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.max.bytes.per.second
remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds
remote.log.manager.follower.thread.pool.size remote.log.manager.task.interval.ms
remote.log.manager.task.retry.backoff.max.ms remote.log.manager.task.retry.backoff.ms
remote.log.manager.task.retry.jitter remote.log.manager.thread.pool.size remote.log.metadata.custom.metadata.max.bytes
remote.log.metadata.manager.class.name remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks remote.log.reader.threads
remote.log.storage.manager.class.name remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix
remote.log.storage.system.enable remote.storage.enable repartition.purge.interval.ms
replica.alter.log.dirs.io.max.bytes.per.second replica.fetch.backoff.ms replica.fetch.max.bytes
replica.fetch.min.bytes replica.fetch.response.max.bytes replica.fetch.wait.max.ms
replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms replica.selector.class
replica.socket.receive.buffer.bytes replica.socket.timeout.ms replication.factor replication.policy.class
replication.policy.internal.topic.separator.enabled replication.policy.separator replication.quota.window.num
replication.quota.window.size.seconds request.timeout.ms request_percentage reserved.broker.max.id
response.http.headers.config rest.advertised.host.name rest.advertised.listener rest.advertised.port
rest.extension.classes retention.bytes retention.ms retries retry.backoff.max.ms retry.backoff.ms
rocksdb.config.setter sasl.client.callback.handler.class sasl.enabled.mechanisms sasl.kerberos.min.time.before.relogin
sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter
sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class sasl.login.class
sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism sasl.mechanism.controller.protocol
sasl.mechanism.inter.broker.protocol sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
sasl.oauthbearer.assertion.template.file sasl.oauthbearer.client.credentials.client.id
sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwks.endpoint.refresh.ms
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
sasl.oauthbearer.token.endpoint.url sasl.server.callback.handler.class sasl.server.max.receive.size
scheduled.rebalance.max.delay.ms security.inter.broker.protocol security.protocol security.providers segment.bytes
segment.index.bytes segment.jitter.ms segment.ms send.buffer.bytes server.max.startup.time.ms session.timeout.ms
share.acknowledgement.mode share.acquire.mode share.auto.offset.reset share.coordinator.append.linger.ms
share.coordinator.cached.buffer.max.bytes share.coordinator.cold.partition.snapshot.interval.ms
share.coordinator.load.buffer.size share.coordinator.snapshot.update.records.per.snapshot
share.coordinator.state.topic.compression.codec share.coordinator.state.topic.min.isr
share.coordinator.state.topic.num.partitions share.coordinator.state.topic.prune.interval.ms
share.coordinator.state.topic.replication.factor share.coordinator.state.topic.segment.bytes share.coordinator.threads
share.coordinator.write.timeout.ms share.fetch.purgatory.purge.interval.requests share.heartbeat.interval.ms
share.isolation.level share.record.lock.duration.ms share.session.timeout.ms socket.connection.setup.timeout.max.ms
socket.connection.setup.timeout.ms socket.listen.backlog.size socket.receive.buffer.bytes socket.request.max.bytes
socket.send.buffer.bytes source.cluster.alias ssl.allow.dn.changes ssl.allow.san.changes ssl.cipher.suites
ssl.client.auth ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.engine.factory.class
ssl.keymanager.algorithm ssl.keystore.location ssl.keystore.type ssl.principal.mapping.rules ssl.protocol ssl.provider
ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.location ssl.truststore.type
state.cleanup.delay.ms state.cleanup.dir.max.age.ms state.dir statestore.cache.max.bytes status.storage.partitions
status.storage.replication.factor status.storage.topic streams.heartbeat.interval.ms streams.num.standby.replicas
streams.session.timeout.ms sync.topic.acls.enabled sync.topic.acls.interval.seconds sync.topic.configs.enabled
sync.topic.configs.interval.seconds target.cluster.alias task.assignor.class task.shutdown.graceful.timeout.ms
task.timeout.ms tasks.max tasks.max.enforce telemetry.max.bytes topic.creation.enable topic.creation.groups
topic.filter.class topic.tracking.allow.reset topic.tracking.enable topics topics.exclude topics.regex
topology.optimization transaction.abort.timed.out.transaction.cleanup.interval.ms transaction.boundary
transaction.boundary.interval.ms transaction.max.timeout.ms transaction.partition.verification.enable
transaction.remove.expired.transaction.cleanup.interval.ms transaction.state.log.load.buffer.size
transaction.state.log.min.isr transaction.state.log.num.partitions transaction.state.log.replication.factor
transaction.state.log.segment.bytes transaction.timeout.ms transaction.two.phase.commit.enable transactional.id
transactional.id.expiration.ms transforms unclean.leader.election.enable unclean.leader.election.interval.ms
unstable.api.versions.enable unstable.feature.versions.enable upgrade.from value.converter
value.converter.plugin.version value.deserializer value.serializer window.size.ms windowed.inner.class.serde
windowstore.changelog.additional.retention.ms worker.sync.timeout.ms worker.unsync.backoff.ms zookeeper.connect
zookeeper.connection.timeout.ms zookeeper.max.in.flight.requests zookeeper.metadata.migration.enable
zookeeper.session.timeout.ms zookeeper.set.acl
"""
_NAMES = frozenset(_DOCUMENTED.split())


def is_harmless(name: str) -> bool:
    """Is it a documented setting that holds no secret?"""
    if name in _NAMES:
        return True
    front = _FRONT.match(name)
    return front is not None and name[front.end() :] in _NAMES
