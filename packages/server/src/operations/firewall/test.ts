import { parseCidr, type RouteBody } from '@slipway/contract'
import { Failure, invalidField } from '../../domain/failure.ts'
import { decidePacket } from '../../domain/firewall.ts'
import { isUuid } from '../../domain/ids.ts'
import type { Queryable } from '../../postgres/database.ts'
import { findVm, type VmRow } from '../../store/compute/vms.ts'
import { findVmByAddress } from '../../store/network/firewalls.ts'
import { compileFor } from './apply.ts'

/** Evaluates the rules of the local VM: the destination of an ingress packet, the source of an egress packet. */
export async function testFirewall(
  db: Queryable,
  projectId: string,
  packet: RouteBody<'firewallRuleTest'>,
): Promise<{ allowed: boolean; rule_id: string }> {
  const source = await resolveEndpoint(db, projectId, 'source', packet.source)
  const destination = await resolveEndpoint(db, projectId, 'destination', packet.destination)
  const isIngress = packet.direction === 'ingress'
  const local = isIngress ? destination : source
  if (!local.vm)
    throw new Failure(
      'invalid_argument',
      `For ${packet.direction}, the ${isIngress ? 'destination' : 'source'} must be the id or address of a VM of this project.`,
    )
  const decision = decidePacket(await compileFor(db, local.vm), {
    direction: packet.direction,
    protocol: packet.protocol,
    peer: isIngress ? source.address : destination.address,
    ...(packet.destination_port !== undefined && { destinationPort: packet.destination_port }),
  })
  return { allowed: decision.allowed, rule_id: decision.ruleId }
}

/** Finds a VM by id or address. Returns the address alone if no VM of the project has it. */
async function resolveEndpoint(
  db: Queryable,
  projectId: string,
  field: string,
  text: string,
): Promise<{ vm?: VmRow; address: string }> {
  if (isUuid(text)) {
    const vm = await findVm(db, projectId, text.toLowerCase())
    if (!vm) throw invalidField(field, `must be a VM of this project; there is no VM ${text}`)
    return { vm, address: vm.private_address }
  }
  if (!parseCidr(text) || text.includes('/'))
    throw invalidField(field, `must be an IPv4 address or a VM id, not ${text}`)
  const found = await findVmByAddress(db, projectId, text)
  const vm = found && (await findVm(db, projectId, found.id))
  return vm ? { vm, address: text } : { address: text }
}
