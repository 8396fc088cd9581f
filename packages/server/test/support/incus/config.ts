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

/** A location in the format of slipway.toml. */
export function incusLocation(incus: Record<string, unknown>): string {
  const common = { allow_unfiltered_internal: true, network_limits: canLimitNetwork }
  const given = { instance_type: 'container', ...common, ...incus }
  const lines = Object.entries(given).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
  if (given.instance_type === 'container') lines.push('gpus = [{ model = "A100 80GB PCIe", count = 8 }]')
  return `[[location]]\nname = "local-a"\nengine = "incus"\n[location.incus]\n${lines.join('\n')}\n`
}

export function incusConfig(incus: Record<string, unknown>): IncusConfig {
  const toml = incusLocation(incus)
  const config = loadConfig(['--config', 'slipway.toml'], {}, () => toml)
  const [location] = config.locations
  if (location?.engine !== 'incus') throw new Error('the location uses another engine')
  return location.incus
}
