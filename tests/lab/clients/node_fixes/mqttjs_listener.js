// An MQTT.js client that subscribes with QoS 0 and never publishes.
//
// In: the version (its package's name), host, port, a client id, a topic, the keep-alive in s. Out: JSON lines on
// standard output: `subscribed`, `received`, and `closed` when its connection ended without SIGTERM, after which it
// connects again.
'use strict'

const [name, host, port, clientId, topic, keepAlive] = process.argv.slice(2)
const mqtt = require(name)

function emit (event, fields) {
  console.log(JSON.stringify({ event, at: Date.now() / 1000, ...fields }))
}

let ending = false
const client = mqtt.connect(`mqtt://${host}:${port}`, { clientId, keepalive: Number(keepAlive), reconnectPeriod: 500 })
client.on('connect', () => client.subscribe(topic, { qos: 0 }, () => emit('subscribed', { topic })))
client.on('message', (from) => emit('received', { topic: from }))
client.on('error', (error) => emit('error', { error: error.message }))
client.on('close', () => { if (!ending) emit('closed', {}) })
process.on('SIGTERM', () => {
  ending = true
  client.end(false, {}, () => process.exit(0))
})
