// npm run test:setup: runs the commands of docs/operate/debian.md in order on a new Debian system in a
// container, with a test certificate authority and mail server, checks the result, and shows how long the
// commands take.
import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ensureInstalled, root } from '../install.mjs'
import { baseArchive, Container, requirePrograms, until } from './container.mjs'
import { buildDebs } from './deb.mjs'
import { Outside } from './outside.mjs'

/**
 * Prometheus waits two minutes before it reports a service that is down. The Alertmanager then waits half a
 * minute before it sends the e-mail.
 */
const maxAlertMs = 300_000
const password = 'a long enough password'
const trustedCertificate = '/usr/local/share/ca-certificates/test.crt'

requirePrograms('mmdebstrap', 'systemd-nspawn', 'nsenter', 'dpkg-deb', 'ip', 'openssl', 'caddy', 'curl')
ensureInstalled('all')
const page = readFileSync(join(root, 'docs/operate/debian.md'), 'utf8')
const [variables, ...blocks] = Array.from(page.matchAll(/^```sh\b.*\n([\s\S]*?)^```$/gm), ([, text]) => text)
const variable = (name) => new RegExp(`^${name}=['"]?([^'"\\s]+)`, 'm').exec(variables)[1]
const [host, operator] = [variable('HOST'), variable('OPERATOR')]

// The packages that the Debian installer installs by default.
const archive = baseArchive('bookworm-important', ['systemd-sysv', 'dbus'], 'important')
const startedAt = performance.now()
const [deb] = await buildDebs()
const container = await Container.boot(archive)
let outside

try {
  outside = new Outside(container.network, host, variable('MAIL_SERVER').split(':')[0])
  await prepare()
  for (const block of blocks) await runBlock(block)
  const minutes = (performance.now() - startedAt) / 60_000
  console.log(`The commands took ${minutes.toFixed(1)} minutes, including the build of the package.`)
  await check()
} catch (error) {
  console.error(
    container.try('journalctl --lines 40 --unit slipway --unit caddy --unit prometheus-alertmanager').stdout,
  )
  throw error
} finally {
  await container.close()
  await outside?.close()
}

/**
 * Prepares the machine that the page describes: its name resolves, it has the package, and it trusts the
 * certificate authority of the test.
 */
async function prepare() {
  const at = (path) => join(container.directory, path)
  copyFileSync(deb, at(join('root', basename(deb))))
  writeFileSync(at('etc/hosts'), outside.hosts)
  mkdirSync(at('usr/local/share/ca-certificates'), { recursive: true })
  writeFileSync(at(trustedCertificate), outside.rootCertificate)
  mkdirSync(at('etc/systemd/system.conf.d'), { recursive: true })
  writeFileSync(
    at('etc/systemd/system.conf.d/test.conf'),
    `[Manager]\nDefaultEnvironment=NODE_EXTRA_CA_CERTS=${trustedCertificate}\n`,
  )
  container.run('systemctl daemon-reexec')
  await outside.start(variable('MAIL_USER'), variable('MAIL_PASSWORD'))
}

async function runBlock(block) {
  const title = block.split('\n')[0].slice(0, 60)
  const from = performance.now()
  const path = '/root/block.sh'
  writeFileSync(join(container.directory, path), `set -euo pipefail\ncd /root\n${variables}\n${block}`)
  const env = { NODE_EXTRA_CA_CERTS: trustedCertificate, TERM: 'xterm', DEBIAN_FRONTEND: 'noninteractive' }
  const { status, stdout, stderr } = block.includes('apt-get')
    ? container.tryOnline(`bash ${path}`, env)
    : // The login reads the password.
      container.try(`printf '%s\\n' '${password}' | bash ${path}`, env)
  const seconds = ((performance.now() - from) / 1000).toFixed(1)
  if (status !== 0) throw new Error(`${block}\nexit code ${status}\n${stdout}${stderr}`)
  console.log(`ok  ${seconds.padStart(5)} s  ${title}`)
  const code = /Setup code [^:]*: (\S+)/.exec(stdout)?.[1]
  if (code) await setUp(code)
  if (block.includes('slipway-server doctor')) assert.match(stdout, /No problems found/)
}

/** Sets up the first operator, which the reader of the page does in a browser. */
async function setUp(code) {
  await until('the certificate is issued', () => {
    try {
      return outside.request('/readyz').status === 200
    } catch {
      return false
    }
  })
  const body = { code, email: operator, password }
  assert.equal(outside.request('/v0.1/auth/setup', body).status, 200)
  console.log(`ok  the first operator is set up over HTTPS`)
}

async function check() {
  assert.equal(outside.request('/metrics').status, 404)
  const open = [80, 443, 8080, 9090, 9093, 9094, 9100].filter((port) => outside.accepts(port))
  assert.deepEqual(open, [80, 443])
  assert.equal(container.run('systemctl is-active slipway-backup.timer').trim(), 'active')
  assert.equal(container.run('ls /var/backups/slipway').trim().split('\n').length, 1)
  const query = `promtool query instant http://127.0.0.1:9090 'up{job="slipway"}'`
  await until('Prometheus reads the metrics', () => container.run(query).includes('=> 1'))
  container.run('chown root /var/backups/slipway')
  assert.notEqual(container.try('systemctl start slipway-backup.service').status, 0)
  assert.deepEqual((await mailWith('TestAlert')).to, [operator])
  assert.deepEqual((await mailWith('SlipwayBackupFailed')).to, [operator])
  assert.deepEqual((await mailWith('#code=')).to, ['ada@example.com'])
  container.run('systemctl stop slipway')
  await mailWith('SlipwayDown')
  console.log(
    'ok  the service is reachable only over HTTPS, backups are scheduled, and alerts and invitations are mailed',
  )
}

function mailWith(words) {
  const find = () => outside.mails.find(({ text }) => text.includes(words))
  return until(`a mail with ${words} arrives`, find, maxAlertMs)
}
