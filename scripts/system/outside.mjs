// Simulates the internet around a server in a network namespace: a certificate authority with the name of
// Let's Encrypt, a mail server, and a client.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { root } from '../install.mjs'

const authority = 'acme-v02.api.letsencrypt.org'
const [ownAddress, serverAddress] = ['198.51.100.1', '198.51.100.10']

export class Outside {
  /** Received e-mails, each with its recipients and its text. */
  mails = []
  #name = `slipway-${process.pid}`
  #directory = mkdtempSync(join(tmpdir(), 'slipway-outside-'))
  #children = []

  /** Creates a network namespace, and connects it to `network`, the network namespace of the server `host`. */
  constructor(network, host, mailServer) {
    this.host = host
    this.mailServer = mailServer
    const ip = (...args) => execFileSync('ip', args)
    const inside = (...args) => execFileSync('nsenter', [`--net=${network}`, 'ip', ...args])
    const end = `s${process.pid}`
    ip('netns', 'add', this.#name)
    ip('link', 'add', end, 'netns', this.#name, 'type', 'veth', 'peer', 'name', 'up0', 'netns', network)
    ip('-n', this.#name, 'address', 'add', `${ownAddress}/24`, 'dev', end)
    ip('-n', this.#name, 'link', 'set', end, 'up')
    ip('-n', this.#name, 'link', 'set', 'lo', 'up')
    inside('address', 'add', `${serverAddress}/24`, 'dev', 'up0')
    inside('link', 'set', 'up0', 'up')
    this.hosts = `127.0.0.1 localhost\n${serverAddress} ${host}\n${ownAddress} ${authority} ${mailServer}\n`
    writeFileSync(this.#path('hosts'), this.hosts)
    this.#makeCertificates()
  }

  /** The certificate that clients must trust. */
  get rootCertificate() {
    return readFileSync(this.#path('ca.crt'), 'utf8')
  }

  /** Starts the certificate authority and the mail server, which accepts one login. */
  async start(user, password) {
    writeFileSync(this.#path('Caddyfile'), this.#authorityConfiguration())
    this.#spawn('caddy', ['run', '--adapter', 'caddyfile', '--config', this.#path('Caddyfile')])
    const sink = this.#spawn(process.execPath, [
      join(root, 'scripts/system/mail-sink.mjs'),
      ...[this.#path('mail.crt'), this.#path('mail.key'), user, password],
    ])
    const lines = createInterface({ input: sink.stdout })
    await new Promise((resolve, reject) => {
      lines.once('line', resolve)
      lines.once('close', () => reject(new Error('the mail server has ended')))
    })
    lines.on('line', (line) => this.mails.push(JSON.parse(line)))
  }

  /** Sends a request to the server as a client on the internet. Returns the status and the body. */
  request(path, body) {
    const flags = [
      '--silent',
      '--show-error',
      '--cacert',
      this.#path('ca.crt'),
      '--write-out',
      '\n%{http_code}',
    ]
    const sent = body ? ['--header', 'content-type: application/json', '--data', JSON.stringify(body)] : []
    const command = this.#inside('curl', [...flags, ...sent, `https://${this.host}${path}`])
    const output = execFileSync('nsenter', command, { encoding: 'utf8' })
    const end = output.lastIndexOf('\n')
    return { status: Number(output.slice(end + 1)), text: output.slice(0, end) }
  }

  /** Returns whether the server accepts connections to this port. */
  accepts(port) {
    const args = ['5', 'bash', '-c', `exec 3<>/dev/tcp/${serverAddress}/${port}`]
    return spawnSync('nsenter', this.#inside('timeout', args)).status === 0
  }

  async close() {
    for (const child of this.#children) {
      const ended = new Promise((resolve) => child.once('close', resolve))
      if (child.exitCode === null && child.kill()) await ended
    }
    execFileSync('ip', ['netns', 'delete', this.#name])
    rmSync(this.#directory, { recursive: true })
  }

  #path(name) {
    return join(this.#directory, name)
  }

  #inside(program, args) {
    const script = `mount --bind ${this.#path('hosts')} /etc/hosts && exec "$@"`
    return [
      ...[`--net=/run/netns/${this.#name}`, 'unshare', '--mount', 'sh', '-c', script, 'sh'],
      ...['env', `HOME=${this.#directory}`, `XDG_DATA_HOME=${this.#directory}`, program, ...args],
    ]
  }

  #spawn(program, args) {
    const child = spawn('nsenter', this.#inside(program, args), { stdio: ['ignore', 'pipe', 'ignore'] })
    this.#children.push(child)
    return child
  }

  #makeCertificates() {
    const key = (name) => [
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-keyout',
      this.#path(`${name}.key`),
    ]
    const openssl = (...args) => execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] })
    const subject = (name) => ['-subj', `/CN=${name}`]
    const authorityFlags = ['-addext', 'keyUsage=critical,keyCertSign,cRLSign']
    openssl(
      'req',
      '-x509',
      ...key('ca'),
      ...subject('Test authority'),
      ...authorityFlags,
      '-days',
      '2',
      '-out',
      this.#path('ca.crt'),
    )
    for (const [file, name] of [
      ['acme', authority],
      ['mail', this.mailServer],
    ]) {
      const issuer = ['-CA', this.#path('ca.crt'), '-CAkey', this.#path('ca.key')]
      const names = ['-addext', `subjectAltName=DNS:${name}`, '-addext', 'basicConstraints=CA:FALSE']
      openssl(
        'req',
        '-x509',
        ...issuer,
        ...key(file),
        ...subject(name),
        ...names,
        '-days',
        '1',
        '-out',
        this.#path(`${file}.crt`),
      )
    }
  }

  /**
   * Returns a configuration for Caddy's own ACME server. It has the address and path of Let's Encrypt, where
   * the Caddy on the tested server looks for it.
   */
  #authorityConfiguration() {
    const file = (name) => this.#path(name)
    return `{
	admin off
	auto_https off
	skip_install_trust
	pki {
		ca local {
			root {
				cert ${file('ca.crt')}
				key ${file('ca.key')}
			}
		}
	}
}
https://${authority} {
	tls ${file('acme.crt')} ${file('acme.key')}
	rewrite /directory /acme/local/directory
	acme_server
}
`
  }
}
