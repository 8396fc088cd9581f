// npm run test:deb: installs, starts, upgrades, removes and purges the Debian package in a container with
// systemd.
import assert from 'node:assert/strict'
import { copyFileSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ensureInstalled, root } from '../install.mjs'
import { Container, requirePrograms, until } from './container.mjs'
import { buildDebs } from './deb.mjs'

requirePrograms('mmdebstrap', 'systemd-nspawn', 'nsenter', 'dpkg-deb')
ensureInstalled('run')
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const [older, newer] = await buildDebs([`${version}~rc1`, version])
const container = await Container.boot()
const noQuestions = { DEBIAN_FRONTEND: 'noninteractive' }
const password = 'a long enough password'

const run = (command) => container.run(command, noQuestions)
const install = (path) => run(`apt-get install -y --no-install-recommends ./${basename(path)}`)
const exists = (path) => container.try(`test -e ${path}`).status === 0
const isReady = () => container.try('curl -sf http://127.0.0.1:8080/readyz').status === 0
const untilReady = () => until('the service is ready', isReady)
const post = (path, body) =>
  JSON.parse(
    run(
      `curl -sS --fail-with-body -H 'content-type: application/json' -d '${JSON.stringify(body)}' http://127.0.0.1:8080${path}`,
    ),
  )
const signIn = () =>
  post('/v0.1/auth/token', { grant_type: 'password', email: 'first@example.com', password }).access_token

const steps = {
  'the package is installed, and the service is enabled but not started': () => {
    assert.match(install(older), /systemctl start slipway|Setting up slipway-server/)
    assert.equal(run('systemctl is-enabled slipway').trim(), 'enabled')
    assert.notEqual(container.try('systemctl is-active slipway').stdout.trim(), 'active')
    assert.equal(run('slipway-server --version').trim(), version)
    assert.match(run('slipway --version'), new RegExp(version.replaceAll('.', '\\.')))
    assert.equal(run('stat -c %U:%a /var/lib/slipway').trim(), 'slipway:700')
  },
  'the service starts, as its own user, and the first operator is set up': async () => {
    run('systemctl start slipway')
    await untilReady()
    assert.equal(run('stat -c %U /proc/$(systemctl show -P MainPID slipway)').trim(), 'slipway')
    const [, code] = /Setup code [^:]*: (\S+)/.exec(run('journalctl --unit slipway'))
    post('/v0.1/auth/setup', { code, email: 'first@example.com', password })
    assert.ok(signIn())
  },
  'a location is added by a reload': async () => {
    run(`printf '[[location]]\\nname = "us-east1-a"\\n' >> /etc/slipway/slipway.toml`)
    run('systemctl reload slipway')
    await until('the location is reloaded', () =>
      run('journalctl --unit slipway').includes('"added":["us-east1-a"]'),
    )
  },
  'the doctor finds no problems': () => {
    const settings = '--quiet --pipe --wait --uid=slipway --property=EnvironmentFile=/etc/slipway/environment'
    const files = '--data-dir /var/lib/slipway --config /etc/slipway/slipway.toml'
    assert.match(run(`systemd-run ${settings} slipway-server doctor ${files}`), /No problems found/)
  },
  'the backup unit writes a backup': () => {
    run('systemctl start slipway-backup.service')
    assert.equal(run('ls /var/backups/slipway').trim().split('\n').length, 1)
    run('systemctl enable --now slipway-backup.timer')
  },
  'an upgrade restarts the service and keeps configuration and data': async () => {
    const before = run('systemctl show -P MainPID slipway').trim()
    install(newer)
    assert.match(run('dpkg -s slipway-server'), new RegExp(`^Version: ${version}$`, 'm'))
    await untilReady()
    assert.notEqual(run('systemctl show -P MainPID slipway').trim(), before)
    assert.match(run('cat /etc/slipway/slipway.toml'), /us-east1-a/)
    assert.ok(signIn())
  },
  'removal stops the service and keeps data and configuration': () => {
    run('apt-get remove -y slipway-server')
    assert.equal(isReady(), false)
    assert.equal(exists('/usr/bin/slipway-server'), false)
    assert.equal(run("find /proc -maxdepth 1 -user slipway -name '[0-9]*'"), '')
    assert.ok(exists('/var/lib/slipway/secret.key'))
    assert.ok(exists('/etc/slipway/slipway.toml'))
  },
  'a new installation continues with the kept data': async () => {
    install(newer)
    run('systemctl start slipway')
    await untilReady()
    assert.ok(signIn())
  },
  'purge keeps the data unless the operator agrees to its deletion': () => {
    run('apt-get purge -y slipway-server')
    assert.ok(exists('/var/lib/slipway/secret.key'))
    assert.equal(exists('/etc/slipway'), false)
    install(newer)
    run(`echo 'slipway-server slipway-server/purge-data boolean true' | debconf-set-selections`)
    run('apt-get purge -y slipway-server')
    assert.equal(exists('/var/lib/slipway'), false)
    assert.equal(exists('/var/backups/slipway'), false)
  },
}

try {
  for (const path of [older, newer]) copyFileSync(path, join(container.directory, 'root', basename(path)))
  for (const [title, step] of Object.entries(steps)) {
    await step()
    console.log(`ok  ${title}`)
  }
} catch (error) {
  console.error(container.try('journalctl --unit slipway --lines 30').stdout)
  throw error
} finally {
  await container.close()
}
