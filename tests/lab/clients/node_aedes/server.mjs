// Aedes, a broker for Node. In: PORT OPTIONS (JSON). Out: a line once it serves; it ends with SIGTERM.
// Options: quota, how many messages a client may publish in a second before its connection is ended; tokens: the
// password is a token, JSON in base64 with `exp` in s, and the connection is ended when it has expired.
import { createServer } from 'node:net'
import { Aedes } from 'aedes'

const options = JSON.parse(process.argv[3] ?? '{}')
const aedes = await Aedes.createBroker()
const sent = new Map()

function refused (text) {
  const error = new Error(text)
  error.returnCode = 5
  return error
}

if (options.quota) {
  aedes.authorizePublish = (client, packet, done) => {
    const now = Math.floor(Date.now() / 1000)
    const own = sent.get(client.id)
    if (own?.second !== now) sent.set(client.id, { second: now, number: 0 })
    sent.get(client.id).number += 1
    if (sent.get(client.id).number > options.quota) {
      client.close()
      return
    }
    done(null)
  }
}
if (options.tokens) {
  aedes.authenticate = (client, user, password, done) => {
    let until
    try {
      until = JSON.parse(Buffer.from(password.toString(), 'base64')).exp * 1000
    } catch {
      return done(refused('no token'), false)
    }
    if (!(until > Date.now())) return done(refused('expired'), false)
    const timer = setTimeout(() => client.close(), until - Date.now())
    client.conn.on('close', () => clearTimeout(timer))
    done(null, true)
  }
}

const server = createServer(aedes.handle)
server.listen(Number(process.argv[2]), '0.0.0.0', () => console.log('{"event": "running"}'))
process.on('SIGTERM', () => process.exit(0))
