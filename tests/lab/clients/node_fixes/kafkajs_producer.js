// A KafkaJS producer with idempotence whose application sends without waiting for the sends before.
//
// In: the version (its package's name), a broker, a client id, a topic of one partition. Out: JSON lines on standard
// output: `sent` for each record that was acknowledged, with the offset that the application was told; `stored` at the
// end, with the number of records that the partition has.
'use strict'

const [name, broker, clientId, topic] = process.argv.slice(2)
const { Kafka, logLevel } = require(name)

const ROUNDS = 5
const AT_ONCE = 20

function emit (event, fields) {
  console.log(JSON.stringify({ event, at: Date.now() / 1000, ...fields }))
}

async function main () {
  const kafka = new Kafka({ clientId, brokers: [broker], logLevel: logLevel.NOTHING })
  const producer = kafka.producer({ idempotent: true })
  await producer.connect()
  for (let round = 0; round < ROUNDS; round++) {
    const numbers = Array.from({ length: AT_ONCE }, (_, index) => round * AT_ONCE + index)
    await Promise.all(numbers.map(async (number) => {
      const messages = [{ key: String(number), value: `order ${number}` }]
      try {
        const [told] = await producer.send({ topic, messages })
        emit('sent', { number, offset: Number(told.baseOffset) })
      } catch (error) {
        emit('refused', { number, error: error.name })
      }
    }))
  }
  await producer.disconnect()
  const admin = kafka.admin()
  await admin.connect()
  const [end] = await admin.fetchTopicOffsets(topic)
  await admin.disconnect()
  emit('stored', { records: Number(end.high) })
}

main().catch((error) => { console.error(error); process.exit(1) })
