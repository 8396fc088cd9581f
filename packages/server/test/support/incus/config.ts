import { spawnSync } from 'node:child_process'
import { type IncusConfig, loadConfig } from '../../../src/config/index.ts'

/** True if this kernel can limit what a guest sends, as Incus does it. */
const canLimitNetwork = (() => {
  const police = 'police rate 1gbit burst 1024k mtu 64kb drop'
  const commands = [
    'ip link add v0 type veth peer name v1',
    'tc qdisc add dev v0 handle ffff:0 ingress',
    `tc filter add dev v0 parent ffff:0 protocol all u32 match u32 0 0 ${police}`,
  ]
  return spawnSync('unshare', ['--net', 'sh', '-c', commands.join(' && ')]).status === 0
})()

/** Returns a configuration file with one location, of containers unless the settings say otherwise. */
export function incusToml(
  incus: Record<string, unknown>,
  location: Record<string, unknown> = { name: 'local-a' },
): string {
  const common = { allow_unfiltered_internal: true, network_limits: canLimitNetwork }
  const given = { instance_type: 'container', ...common, ...incus }
  const gpus = 'gpus = [{ model = "A100 80GB PCIe", count = 8 }]'
  return [
    '[[location]]',
    ...linesOf({ engine: 'incus', ...location }),
    '[location.incus]',
    ...linesOf(given),
    ...(given.instance_type === 'container' ? [gpus] : []),
    '',
  ].join('\n')
}

const linesOf = (values: Record<string, unknown>) =>
  Object.entries(values).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)

export function incusConfig(incus: Record<string, unknown>): IncusConfig {
  const config = loadConfig(['--config', 'slipway.toml'], {}, () => incusToml(incus))
  const [location] = config.locations
  if (location?.engine !== 'incus') throw new Error('the location uses another engine')
  return location.incus
}
