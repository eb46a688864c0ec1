// Many MQTT.js clients in one process, which connect again by themselves whenever they are cut off.
//
// In: a plan (JSON, made by clients/mqtt.py) as the only word. Out: JSON lines on standard output: `connected` and, for
// a connection that came about but on which the server did not let the client in, `in_vain`. SIGTERM ends all in order.
// MQTT.js gives up a login that is not answered within connectTimeout; its pause never grows, the shortest holds.
'use strict'

const mqtt = require('mqtt')

const plan = JSON.parse(process.argv[2])
const clients = new Map()
let stopped = false

function emit (event, clientId) {
  console.log(JSON.stringify({ event, at: Date.now() / 1000, client_id: clientId }))
}

function pause (seconds) {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000))
}

function start (clientId, shortestS) {
  const client = mqtt.connect({
    host: plan.host,
    port: plan.port,
    protocolVersion: plan.version,
    clientId,
    keepalive: plan.keep_alive,
    connectTimeout: plan.keep_alive * 1000,
    reconnectPeriod: shortestS * 1000,
    username: plan.user,
    password: plan.password
  })
  let letIn = false
  let notThere = false
  client.on('connect', () => {
    letIn = true
    emit('connected', clientId)
  })
  client.on('error', (error) => { notThere = error.code === 'ECONNREFUSED' })
  client.on('close', () => {
    if (!letIn && !notThere && !stopped) emit('in_vain', clientId)
    letIn = notThere = false
  })
  clients.set(clientId, client)
}

async function main () {
  for (const [clientId, [shortestS]] of Object.entries(plan.clients)) {
    if (stopped) return
    start(clientId, shortestS)
    await pause(plan.apart_s)
  }
  while (!stopped) {
    await pause(plan.publish_s)
    for (const [clientId, client] of clients) {
      if (client.connected) client.publish(`${plan.topic}/${clientId}`, 'on')
    }
  }
}

process.on('SIGTERM', async () => {
  stopped = true
  await Promise.all([...clients.values()].map((client) => client.endAsync(!client.connected)))
  process.exit(0)
})

main()
