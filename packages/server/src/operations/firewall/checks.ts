import type { FirewallEndpoint } from '@slipway/contract'
import { invalidField } from '../../domain/failure.ts'
import type { Queryable } from '../../postgres/database.ts'
import { isFirewallResource } from '../../store/network/rules.ts'

interface Endpoint {
  resource_id?: string
  cidr?: string
}

interface RuleParts {
  protocols?: string[]
  source_ports?: string[]
  destination_ports?: string[]
}

export function checkPorts(rule: RuleParts, sent: RuleParts = rule): void {
  for (const field of ['source_ports', 'destination_ports'] as const)
    if (rule[field]?.length && rule.protocols?.every((protocol) => protocol === 'icmp'))
      throw field in sent
        ? invalidField(field, 'must be empty when the only protocol is icmp')
        : invalidField('protocols', `must contain tcp or udp, because ${field} is not empty`)
}

export function checkEndpointForms(rule: { sources?: Endpoint[]; destinations?: Endpoint[] }): void {
  for (const field of ['sources', 'destinations'] as const)
    for (const [index, { resource_id = '', cidr = '' }] of (rule[field] ?? []).entries())
      if ((resource_id === '') === (cidr === ''))
        throw invalidField(`${field}/${index}`, 'must have exactly one of cidr and resource_id')
}

/** Checks that the resources belong to this project. Returns endpoints with both members, '' for the unused one. */
export async function checkEndpoints(
  db: Queryable,
  projectId: string,
  field: string,
  endpoints: Endpoint[],
): Promise<FirewallEndpoint[]> {
  const complete = endpoints.map(({ resource_id = '', cidr = '' }) => ({ resource_id, cidr }))
  for (const [index, { resource_id }] of complete.entries())
    if (resource_id !== '' && !(await isFirewallResource(db, projectId, resource_id)))
      throw invalidField(`${field}/${index}/resource_id`, 'must be a VM, subnet or network of this project')
  return complete
}
