import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { Firewalls, type ProtectedVm } from '../../../src/engines/incus/firewall.ts'
import type { ReceivedRequest } from '../../support/incus/stand-in.ts'
import { contextOf, incus, signal, useStandIn } from '../../support/incus/stand-in-bench.ts'

useStandIn()
const bridge = 'sw0'
const path = `/1.0/network-acls/${bridge}`
const vms = Array.from(
  { length: 100 },
  (_, index): ProtectedVm => ({
    ...{ id: randomUUID(), bridge, subnetCidr: '172.27.0.0/16', privateAddress: `172.27.0.${index + 4}` },
  }),
)
const rule = {
  ...{ ruleId: 'r', action: 'allow', direction: 'ingress', protocols: ['tcp'], peers: ['0.0.0.0/0'] },
  ...{ sourcePorts: [], destinationPorts: [[22, 22]] },
} as never
const writes = () => incus.asked.filter(({ method }) => method === 'PUT').length

/** Stores an ACL; `refuses` returns an error for a write. */
function storeAcl(refuses: (body: StoredAcl) => Error | undefined = () => undefined) {
  const stored = { acl: { description: '', config: {}, ingress: [], egress: [] } as StoredAcl }
  incus.recorded.set(path, () => stored.acl)
  incus.recorded.set(`PUT ${path}`, ({ body }: ReceivedRequest) => {
    const error = refuses(body as StoredAcl)
    if (!error) stored.acl = body as StoredAcl
    return error ?? {}
  })
  return stored
}
interface StoredAcl {
  description: string
  config: Record<string, string>
  ingress: { description: string }[]
  egress: unknown[]
}

test('without agents, a rule change of 100 VMs takes a few writes of the ACL of their bridge', async () => {
  const stored = storeAcl()
  const firewalls = new Firewalls(await contextOf())
  const results = await Promise.all(vms.map((vm) => firewalls.apply(vm, [rule], 3, signal)))
  expect(results).toEqual(vms.map(() => true))
  expect(new Set(stored.acl.ingress.map(({ description }) => description))).toEqual(
    new Set(vms.map(({ id }) => id)),
  )
  expect(writes()).toBeLessThanOrEqual(3)
})

test('older rules, rules of the same VM and a removal that wait together have the result of their order', async () => {
  const stored = storeAcl()
  const firewalls = new Firewalls(await contextOf())
  const [vm, other] = vms as [ProtectedVm, ProtectedVm]
  const results = await Promise.all([
    ...[firewalls.apply(vm, [rule], 5, signal), firewalls.apply(vm, [], 4, signal)],
    ...[firewalls.apply(other, [rule], 2, signal), firewalls.apply(vm, [rule], 6, signal)],
  ])
  expect(results).toEqual([true, false, true, true])
  expect(await firewalls.generation(vm, signal)).toBe(6)
  await Promise.all([firewalls.remove(vm, signal), firewalls.apply(other, [rule], 3, signal)])
  expect(stored.acl.ingress.map(({ description }) => description)).toEqual([other.id])
})

test('a change that Incus refuses does not prevent the others that wait with it', async () => {
  const bad = vms[0]!
  storeAcl(({ ingress }) =>
    ingress.some(({ description }) => description === bad.id) ? new Error('Invalid rule') : undefined,
  )
  const firewalls = new Firewalls(await contextOf())
  const results = await Promise.allSettled(
    vms.slice(0, 5).map((vm) => firewalls.apply(vm, [rule], 1, signal)),
  )
  expect(results.map(({ status }) => status)).toEqual(['rejected', ...Array(4).fill('fulfilled')])
})
