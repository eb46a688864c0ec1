// MQTT.js client of the lab: one connection, driven step by step.
//
// In: a plan (JSON, made by clients/mqtt.py) as the only word; `options` and `properties` are in the library's names.
// Out: JSON lines on standard output. SIGTERM ends a stay.
'use strict'

const mqtt = require('mqtt')
const WebSocket = require('ws') // the one that MQTT.js itself uses

const LIMIT_MS = 30000
const plan = JSON.parse(process.argv[2])
const scheme = plan.transport === 'websockets' ? 'ws' : 'mqtt'
let received = 0
let socket = null
let stopped = false

function emit (event, fields) {
  console.log(JSON.stringify({ event, at: Date.now() / 1000, ...fields }))
}

function pause (seconds) {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000))
}

async function until (done, what) {
  const deadline = Date.now() + LIMIT_MS
  while (!done()) {
    if (Date.now() > deadline) throw new Error(`not in time: ${what}`)
    await pause(0.01)
  }
}

function content (step) {
  return step.size === undefined ? (step.payload || '') : Buffer.alloc(step.size)
}

// Sends what is longer than plan.fragment_bytes in fragments, with a ping after the first.
class Fragmenting extends WebSocket {
  send (data, done) {
    const size = plan.fragment_bytes || data.length
    for (let at = 0; at === 0 || at < data.length; at += size) {
      const last = at + size >= data.length
      super.send(data.subarray(at, at + size), { fin: last }, last ? done : undefined)
      if (at === 0 && !last) this.ping()
    }
  }
}

function connectSocket (url, protocols, settings) {
  socket = new Fragmenting(url, protocols, settings.wsOptions)
  return socket
}

function options () {
  const settings = {
    clientId: plan.client_id,
    protocolVersion: plan.version,
    keepalive: plan.keep_alive,
    clean: plan.clean !== false,
    reconnectPeriod: 0,
    createWebsocket: connectSocket,
    ...plan.options
  }
  if (plan.version === 3) settings.protocolId = 'MQIsdp'
  if (plan.user) Object.assign(settings, { username: plan.user, password: plan.password })
  if (plan.properties) settings.properties = plan.properties
  if (plan.will) settings.will = plan.will
  return settings
}

const steps = {
  async subscribe (client, step) {
    const wanted = Object.fromEntries(step.filters.map(({ name, ...rest }) => [name, rest]))
    const granted = await client.subscribeAsync(wanted, { properties: step.properties })
    emit('subscribed', { filters: granted.map((one) => one.topic), codes: granted.map((one) => one.qos) })
  },
  async unsubscribe (client, step) {
    const answer = await client.unsubscribeAsync(step.names)
    emit('unsubscribed', { filters: step.names, codes: (answer && answer.granted) || [] })
  },
  async publish (client, step) {
    const how = { qos: step.qos || 0, retain: step.retain || false, properties: step.properties }
    for (let number = 0; number < (step.count || 1); number++) {
      const sent = content(step)
      const answer = await client.publishAsync(step.topic, sent, how)
      const code = answer && answer.reasonCode !== undefined ? { code: answer.reasonCode } : {}
      emit('published', { topic: step.topic, qos: how.qos, retain: how.retain, size: sent.length, whole: true, ...code })
      await pause(step.pause_s || 0)
    }
  },
  receive: (client, step) => until(() => received >= step.count, `${step.count} deliveries`),
  idle: (client, step) => pause(step.s),
  // A ping frame of WebSocket, not of MQTT.
  async websocket_ping (client) { socket.ping('still there') },
  stay: async (client) => { while (!stopped && client.connected) await pause(0.05) },
  disconnect: (client, step) => client.endAsync(false, { reasonCode: step.code || 0, properties: step.properties })
}

// What the lab's Mochi asks for: its challenge backwards.
function answerChallenge (packet, done) {
  emit('challenged', { code: packet.reasonCode })
  const data = Buffer.from(packet.properties.authenticationData).reverse()
  const properties = { authenticationMethod: packet.properties.authenticationMethod, authenticationData: data }
  done(null, { cmd: 'auth', reasonCode: packet.reasonCode, properties })
}

async function main () {
  const client = mqtt.connect(`${scheme}://${plan.host}:${plan.port}`, options())
  client.handleAuth = answerChallenge
  client.on('connect', (packet) => emit('connected', {
    code: packet.reasonCode ?? packet.returnCode, session_present: packet.sessionPresent
  }))
  client.on('disconnect', (packet) => emit('disconnected', { by_server: true, code: packet.reasonCode }))
  client.on('message', (topic, payload, packet) => {
    received += 1
    emit('received', {
      topic, qos: packet.qos, retain: packet.retain, mid: packet.messageId ?? 0, size: payload.length
    })
  })
  client.on('error', (error) => emit('refused', { code: error.code }))
  await until(() => client.connected, 'the connection')
  emit('did', { step: 'connect' })
  for (const step of plan.steps) {
    await steps[step.do](client, step)
    emit('did', { step: step.do })
  }
  process.exit(0)
}

process.on('SIGTERM', () => { stopped = true })
main().catch((error) => { console.error(error); process.exit(1) })
