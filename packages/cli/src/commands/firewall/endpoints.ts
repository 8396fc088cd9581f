import type { FirewallRule } from '@slipway/sdk'
import type { Cli } from '../../core/cli.ts'
import { idOf } from '../../core/resource.ts'
import { UsageError } from '../../errors/cli-error.ts'
import { networks } from '../network/resource.ts'
import { subnets } from '../subnet/resource.ts'
import { vms } from '../vm/resource.ts'
import { firewallRules } from './resource.ts'

/** Checks only the format. The service rejects invalid addresses such as 300.1.1.1 or 10.0.0.1/8. */
export const looksLikeAddress = (text: string): boolean => /^\d{1,3}(\.\d{1,3}){3}(\/\d{1,2})?$/.test(text)

/** Keeps addresses, and replaces the name of a subnet, a network or a VM with its id. */
export async function endpointsOf(
  cli: Cli,
  texts: string[],
): Promise<{ cidr?: string; resource_id?: string }[]> {
  return Promise.all(
    texts.map(async (text) => {
      if (looksLikeAddress(text)) return { cidr: text }
      for (const kind of [subnets, networks]) {
        const match = (await kind.list(cli)).find(({ name }) => name === text)
        if (match) return { resource_id: match.id }
      }
      return { resource_id: await idOf(cli, vms, text) }
    }),
  )
}

/** Returns the named network. Without a name, returns the default network or the only one. */
export async function networkOf(cli: Cli, wanted: string | undefined): Promise<{ id: string; cidr: string }> {
  const all = await networks.list(cli)
  const found = all.find(({ id, name }) =>
    wanted ? id === wanted || name === wanted : name === 'default-vpc-network',
  )
  const chosen = found ?? (!wanted && all.length === 1 ? all[0] : undefined)
  if (!chosen) {
    const message = wanted ? `There is no network ${wanted}.` : 'The project has no default network.'
    throw new UsageError(message, [`Choose one with --network: ${all.map(({ name }) => name).join(', ')}`])
  }
  return chosen
}

/** Lists the rules. Tables show the names of VMs, subnets and networks; other formats have the ids. */
export async function rulesWithNames(cli: Cli): Promise<FirewallRule[]> {
  if (cli.format.kind !== 'table') return firewallRules.list(cli)
  const [rules, ...named] = await Promise.all([
    firewallRules.list(cli),
    networks.list(cli),
    subnets.list(cli),
    vms.list(cli),
  ])
  const nameOf = new Map(named.flat().map(({ id, name }) => [id, name]))
  const rename = (endpoints: FirewallRule['sources']) =>
    endpoints.map(({ cidr, resource_id }) => ({ cidr, resource_id: nameOf.get(resource_id) ?? resource_id }))
  return rules.map((rule) => ({
    ...rule,
    sources: rename(rule.sources),
    destinations: rename(rule.destinations),
  }))
}
