import { existsSync } from 'node:fs'
import { appendFile, readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { ConfigError, loadConfig } from './config/index.ts'
import { runAgent } from './engines/incus/operate/agent.ts'
import type { IncusLocation } from './engines/incus/operate/doctor.ts'
import { init } from './engines/incus/operate/init.ts'
import { join, readPastedToken } from './engines/incus/operate/join.ts'

const usage = `Usage: slipway-server incus init [--address HOST:8443] [--location NAME] [--public-ipv4 BLOCK]
                                 [--storage-driver NAME] [--storage-source DEVICE] [--config FILE] [--socket PATH]
       slipway-server incus join --address HOST:8443 [--storage-source DEVICE] [--socket PATH]
       slipway-server incus agent [--project NAME] [--state-dir DIR] [--socket PATH]

init prepares Incus on this machine for VMs: it creates a storage pool and a project, enables filtering of traffic
between guests, and adds the location to FILE (default slipway.toml). With --address, it also creates a cluster of one
member, and a certificate for the service. join makes this machine the next member; to get the token, run "incus
cluster add NAME" on a member; join reads it from standard input. Both commands can be repeated. agent runs on every member of a cluster until it is
stopped: it creates the bridges, addresses and packet filters of the member's VMs.`

const options = {
  address: { type: 'string', default: '' },
  config: { type: 'string', default: 'slipway.toml' },
  location: { type: 'string' },
  'public-ipv4': { type: 'string', default: '' },
  'storage-driver': { type: 'string', default: 'dir' },
  'storage-source': { type: 'string', default: '' },
  socket: { type: 'string', default: '/var/lib/incus/unix.socket' },
  project: { type: 'string', default: 'slipway' },
  'state-dir': { type: 'string', default: '/var/lib/slipway-agent' },
  help: { type: 'boolean' },
} as const

/** Storage drivers with pools that all members share. */
const remoteDrivers = ['ceph', 'lvmcluster']

const say = (line: string) => console.log(line)

export async function runIncusCommand(argv: string[]): Promise<void> {
  const { positionals, values } = parseArgs({ args: argv, allowPositionals: true, options })
  if (values.help) return console.log(usage)
  const { address } = values
  if (address !== '' && !/^\S+:\d+$/.test(address))
    throw new ConfigError(
      `--address ${address} is invalid: expected a host and a port, such as 10.0.0.1:8443`,
    )
  const storageSource = values['storage-source']
  switch (positionals.join(' ')) {
    case 'init': {
      const { location, isNew, block } = await locationOf(values)
      const { socket, 'storage-driver': storageDriver } = values
      await init(location.incus, { socket, storageDriver, storageSource, address, say })
      if (isNew) await appendFile(values.config, block)
      say(`location ${location.name} in ${values.config}: ${isNew ? 'written' : 'exists'}`)
      return say('Next: slipway-server doctor --engine incus')
    }
    case 'join': {
      if (address === '') throw new ConfigError(usage)
      // Only the defaults and the socket of this location are used.
      const [location] = locationsOf(blockOf({ ...values, address: '' }))
      if (location?.engine !== 'incus') throw new ConfigError('the location uses another engine')
      const readToken = () => {
        if (process.stdin.isTTY) say('Paste the token that "incus cluster add NAME" printed on a member:')
        return readPastedToken(process.stdin)
      }
      await join(location.incus, { readToken, address, storageSource, say })
      return say(
        `Next: add "https://${address}" to urls in slipway.toml; then slipway-server doctor --engine incus`,
      )
    }
    case 'agent': {
      const [location] = locationsOf(blockOf({ ...values, address: '' }))
      if (location?.engine !== 'incus') throw new ConfigError('the location uses another engine')
      return runAgent(location.incus, values.project, values['state-dir'], say)
    }
    default:
      throw new ConfigError(usage)
  }
}

type Values = ReturnType<typeof parseArgs<{ options: typeof options }>>['values']

/** Returns the location that the file already has, or a new one with the lines to append to the file. */
async function locationOf(
  values: Values,
): Promise<{ location: IncusLocation; isNew: boolean; block: string }> {
  const before = existsSync(values.config) ? await readFile(values.config, 'utf8') : ''
  const name = values.location
  const known = locationsOf(before).find(
    (location) => location.engine === 'incus' && (name === undefined || location.name === name),
  )
  if (known?.engine === 'incus') {
    // The service connects as the file says, so --address would have no effect.
    if (values.address && known.incus.urls.length === 0)
      throw new ConfigError(
        `location ${known.name} uses a socket: add urls and certificates to it, or choose another --location`,
      )
    return { location: known, isNew: false, block: '' }
  }
  const block = `${before === '' ? '' : '\n'}${blockOf(values)}`
  const location = locationsOf(before + block).at(-1)
  if (location?.engine !== 'incus') throw new ConfigError(`${values.config}: the location cannot be added`)
  return { location, isNew: true, block }
}

const locationsOf = (toml: string) =>
  loadConfig(['--config', 'slipway.toml', '--no-demo'], process.env, () => toml).locations

/** Returns the lines of slipway.toml that define the location. Settings that they omit have their defaults. */
function blockOf(values: Values): string {
  const nextToConfig = (file: string) => JSON.stringify(resolve(dirname(values.config), file))
  const { socket, address } = values
  const connection = address
    ? [
        `urls = [${JSON.stringify(`https://${address}`)}]`,
        `client_cert_file = ${nextToConfig('incus-client.crt')}`,
        `client_key_file = ${nextToConfig('incus-client.key')}`,
        `server_cert_file = ${nextToConfig('incus-server.crt')}`,
      ]
    : [`socket = ${JSON.stringify(socket)}`]
  const publicIpv4 = values['public-ipv4']
  return [
    '[[location]]',
    `name = ${JSON.stringify(values.location ?? 'local-a')}`,
    'engine = "incus"',
    `storage = "${remoteDrivers.includes(values['storage-driver']) ? 'shared' : 'local'}"`,
    ...(publicIpv4 ? [`public_ipv4 = ${JSON.stringify(publicIpv4)}`] : []),
    '',
    '[location.incus]',
    ...connection,
    '',
  ].join('\n')
}
