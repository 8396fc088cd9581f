import { isUuid } from '@slipway/contract/names'
import type { Cli } from '../core/cli.ts'
import { resolveAmong } from '../core/names.ts'
import { disks } from './disk/resource.ts'
import { firewallRules } from './firewall/resource.ts'
import { groups } from './group/resource.ts'
import { networks } from './network/resource.ts'
import { subnets } from './subnet/resource.ts'
import { vms } from './vm/resource.ts'

/** The kinds of resources that most events and operations are about. */
const kinds = [vms, groups, disks, firewallRules, networks, subnets]

async function namedResources(cli: Cli): Promise<{ id: string; name: string; hint: string }[]> {
  const lists = await Promise.all(
    kinds.map(async ({ list, title }) =>
      (await list(cli)).map(({ id, name }) => ({ id, name, hint: title })),
    ),
  )
  return lists.flat()
}

/** Maps the ids of the project's resources to their names. Empty unless the output is a table. */
export async function namesById(cli: Cli): Promise<Map<string, string>> {
  if (cli.format.kind !== 'table') return new Map()
  return new Map((await namedResources(cli)).map(({ id, name }) => [id, name]))
}

/** Returns the id of the VM, group, disk, firewall rule, network or subnet with this name or id. */
export async function idOfAny(cli: Cli, wanted: string): Promise<string> {
  if (isUuid(wanted)) return wanted
  return resolveAmong('resource', wanted, await namedResources(cli), (resource) => resource).id
}
