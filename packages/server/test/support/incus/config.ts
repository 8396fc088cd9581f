import { type IncusConfig, loadConfig } from '../../../src/config/index.ts'
import { canLimitNetwork } from '../../../src/engines/incus/traffic-control.ts'

/** True if this kernel can limit the network of guests in the way that Incus does. */
export const isNetworkLimited = await canLimitNetwork()

/**
 * Returns a configuration file with one location, whose guests are containers unless the settings say
 * otherwise.
 */
export function incusToml(
  incus: Record<string, unknown>,
  location: Record<string, unknown> = { name: 'local-a' },
): string {
  const common = { allow_unfiltered_internal: true, network_limits: isNetworkLimited }
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
