// KafkaJS clients of the incidents: a work of `works` by name.
//
// In: a work and NAME=VALUE words: broker=, client_id=, topic=, group= and what the work takes. Out: JSON lines on
// standard output. SIGTERM ends a work in order.
'use strict'

const { Kafka, logLevel, Partitioners } = require('kafkajs')

const words = Object.fromEntries(process.argv.slice(3).map((word) => {
  const place = word.indexOf('=')
  return [word.slice(0, place), word.slice(place + 1)]
}))
const brokers = words.broker.split(',')
// tokens=fresh: a new token of OAUTHBEARER whenever one is wanted, lives_s= long; tokens=kept: the first for ever.
const secret = () => {
  const now = Math.floor(Date.now() / 1000)
  const part = (fields) => Buffer.from(JSON.stringify(fields)).toString('base64url')
  return `${part({ alg: 'none' })}.${part({ sub: words.client_id, iat: now, exp: now + Number(words.lives_s) })}.`
}
const first = words.tokens && secret()
const oauthBearerProvider = async () => ({ value: words.tokens === 'kept' ? first : secret() })
const sasl = words.tokens ? { mechanism: 'oauthbearer', oauthBearerProvider } : words.user ? { mechanism: words.mechanism || 'plain', username: words.user, password: words.password } : undefined
const kafka = new Kafka({ clientId: words.client_id, brokers, logLevel: logLevel.NOTHING, sasl })
let ends
const stop = new Promise((resolve) => { ends = resolve })
let stopped = false
for (const name of ['SIGTERM', 'SIGINT']) process.on(name, () => { stopped = true; ends() })

function emit (event, fields) {
  console.log(JSON.stringify({ event, ...fields }))
}

function pause (ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

// Reads topic= in group=; min_bytes=, max_wait_ms=, handle_ms=; target=: writes each record there as it is.
async function work () {
  const consumer = kafka.consumer({
    groupId: words.group,
    sessionTimeout: 10000,
    heartbeatInterval: 1000,
    minBytes: Number(words.min_bytes || 1),
    maxWaitTimeInMs: Number(words.max_wait_ms || 1000)
  })
  const producer = words.target && kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  if (producer) await producer.connect()
  await consumer.connect()
  await consumer.subscribe({ topics: [words.topic], fromBeginning: true })
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => emit('session', { member: payload.memberId, assigned: payload.memberAssignment }))
  await consumer.run({
    autoCommitInterval: 1000,
    partitionsConsumedConcurrently: 3,
    eachMessage: async ({ message }) => {
      if (producer) await producer.send({ topic: words.target, messages: [{ key: message.key, value: message.value }] })
      if (words.handle_ms) await pause(Number(words.handle_ms))
    }
  })
  await stop
  await consumer.disconnect()
  if (producer) await producer.disconnect()
}

// Writes rate= records a second to topic=; partition=: all to that one.
async function send () {
  const fixed = () => () => Number(words.partition)
  const createPartitioner = 'partition' in words ? fixed : Partitioners.DefaultPartitioner
  const producer = kafka.producer({ createPartitioner })
  await producer.connect()
  emit('session', {})
  for (let number = 0; !stopped; number++) {
    const messages = Array.from({ length: 5 }, (_, index) => ({ key: `key-${(number * 5 + index) % 50}`, value: `reading ${number}-${index}` }))
    try {
      await producer.send({ topic: words.topic, messages })
    } catch (error) {
      emit('refused', { error: error.name })
    }
    await pause(5000 / Number(words.rate || 20))
  }
  await producer.disconnect()
}

// A health check: a new admin client for each look at topic=.
async function looks () {
  emit('session', {})
  while (!stopped) {
    const admin = kafka.admin()
    await admin.connect()
    await admin.fetchTopicOffsets(words.topic)
    await admin.disconnect()
    await pause(Number(words.pause_ms || 300))
  }
}

// An operator's dashboard: one admin client that lists everything every pause_ms=.
async function lists () {
  const admin = kafka.admin()
  await admin.connect()
  emit('session', {})
  while (!stopped) {
    const topics = await admin.listTopics()
    await admin.fetchTopicMetadata({ topics })
    const { groups } = await admin.listGroups()
    await admin.describeGroups(groups.map((one) => one.groupId))
    for (const one of groups) await admin.fetchOffsets({ groupId: one.groupId })
    for (const topic of topics.filter((one) => !one.startsWith('__'))) await admin.fetchTopicOffsets(topic)
    await admin.describeCluster()
    await pause(Number(words.pause_ms || 3000))
  }
  await admin.disconnect()
}

// Only connects, as a client that is refused at the door.
async function knocks () {
  const producer = kafka.producer()
  emit('session', {})
  while (!stopped) {
    try {
      await producer.connect()
      emit('ready', {})
      await stop
    } catch (error) {
      emit('refused', { error: error.name, message: error.message })
      await pause(1500)
    }
  }
}

const works = { work, send, looks, lists, knocks }
works[process.argv[2]]().then(() => process.exit(0), (error) => { console.error(error); process.exit(1) })
