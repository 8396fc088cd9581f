import { type CompiledRule, compileFirewall } from '../../domain/firewall.ts'
import { EngineError } from '../../engines/engine.ts'
import type { Services } from '../../services.ts'
import type { Queryable } from '../../store/database.ts'
import { findVmsBehind, firewallOfNetwork, markFirewallApplied } from '../../store/network/firewalls.ts'
import { engineAt } from '../engine-work.ts'

const batch = 100

interface FirewalledVm {
  id: string
  network_id: string
  subnet_id: string
  private_address: string
  public_address: string | null
}

/** What the engine is to enforce for this VM, from the rules as they now are. */
export async function compileFor(db: Queryable, vm: FirewalledVm): Promise<CompiledRule[]> {
  const { rules, resolved } = await firewallOfNetwork(db, vm.network_id)
  return compileFirewall(
    {
      id: vm.id,
      privateAddress: vm.private_address,
      publicAddress: vm.public_address ?? '',
      subnetId: vm.subnet_id,
      networkId: vm.network_id,
    },
    rules.map((rule) => ({
      ...rule,
      sourcePorts: rule.source_ports,
      destinationPorts: rule.destination_ports,
    })),
    (resourceId) => resolved[resourceId] ?? [],
  )
}

/**
 * Brings every VM that is behind up to its wanted firewall. The only way that rules reach engines once a VM exists:
 * rule changes call it for their network, the reconciler for all. Returns how many are still behind.
 */
export async function applyFirewalls(
  services: Services,
  networkId: string | null,
  signal: AbortSignal,
): Promise<number> {
  const vms = await findVmsBehind(services.database, networkId, batch)
  let failures = 0
  for (const vm of vms) {
    const rules = await compileFor(services.database, vm)
    try {
      const engine = engineAt(services, vm.location)
      const generation = vm.firewall_wanted
      await engine.applyFirewall(vm, rules, { generation, signal })
      const inForce = (await engine.inspectVm(vm, signal))?.firewallGeneration ?? generation
      if (inForce < generation) throw new EngineError('unavailable', 'the engine did not apply the firewall')
      await markFirewallApplied(services.database, vm.id, generation)
    } catch (error) {
      if (!(error instanceof EngineError)) throw error
      // Stale: someone applied a newer one. Missing: it is being removed, or the VM reconciler will notice.
      if (error.kind === 'stale' || error.kind === 'missing') continue
      failures++
      services.log.warn({ err: error, vm: vm.id }, 'firewall not applied')
    }
  }
  return vms.length === batch ? Math.max(1, failures) : failures
}
