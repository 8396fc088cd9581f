import { type FirewallEndpoint, parseCidr } from '@slipway/contract'
import { invalidField } from '../../domain/failure.ts'
import { parsePort } from '../../domain/firewall.ts'
import { isUuid } from '../../domain/ids.ts'
import type { Queryable } from '../../store/database.ts'
import { isFirewallResource } from '../../store/network/rules.ts'

interface RuleParts {
  protocols?: string[]
  source_ports?: string[]
  destination_ports?: string[]
}

export function checkPorts(rule: RuleParts): void {
  for (const field of ['source_ports', 'destination_ports'] as const) {
    const ports = rule[field] ?? []
    const bad = ports.find((port) => !parsePort(port))
    if (bad !== undefined)
      throw invalidField(field, `"${bad}" is not a port or range such as "22" or "3000-8080", within 1–65535`)
    if (ports.length > 0 && rule.protocols?.every((protocol) => protocol === 'icmp'))
      throw invalidField(field, 'icmp alone has no ports')
  }
}

/** Each has exactly one member set; what it names is of this project. Returned with both members, '' for the unused. */
export async function checkEndpoints(
  db: Queryable,
  projectId: string,
  field: string,
  endpoints: { resource_id?: string; cidr?: string }[],
): Promise<FirewallEndpoint[]> {
  const whole = endpoints.map(({ resource_id = '', cidr = '' }) => ({ resource_id, cidr }))
  for (const [index, { resource_id, cidr }] of whole.entries()) {
    const at = `${field}/${index}`
    if ((resource_id === '') === (cidr === ''))
      throw invalidField(at, 'needs exactly one of cidr and resource_id')
    if (cidr !== '' && !parseCidr(cidr))
      throw invalidField(`${at}/cidr`, `"${cidr}" is not an IPv4 block with zero host bits, or an address`)
    if (
      resource_id !== '' &&
      !(isUuid(resource_id) && (await isFirewallResource(db, projectId, resource_id)))
    )
      throw invalidField(`${at}/resource_id`, 'is not a VM, subnet or network of this project')
  }
  return whole
}
