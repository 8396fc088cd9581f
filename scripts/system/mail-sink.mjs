// A mail server for tests, with TLS on port 465: mail-sink.mjs CERTIFICATE KEY USER PASSWORD. It prints a
// line when it is ready, and then each e-mail that it receives as a line of JSON.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { root } from '../install.mjs'

const [cert, key, user, password] = process.argv.slice(2)
const { SMTPServer } = createRequire(join(root, 'packages/server/package.json'))('smtp-server')
const server = new SMTPServer({
  secure: true,
  cert: readFileSync(cert),
  key: readFileSync(key),
  onAuth: ({ username, password: given }, _session, done) =>
    username === user && given === password ? done(null, { user }) : done(new Error('wrong password')),
  onData(stream, { envelope }, done) {
    let text = ''
    stream.setEncoding('utf8').on('data', (part) => {
      text += part
    })
    stream.on('end', () => {
      const to = envelope.rcptTo.map(({ address }) => address)
      console.log(JSON.stringify({ to, text: decode(text) }))
      done()
    })
  },
})
server.listen(465, () => console.log('ready'))

/** Decodes the quoted-printable encoding of an e-mail. */
function decode(text) {
  return text
    .replaceAll('=\r\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
}
