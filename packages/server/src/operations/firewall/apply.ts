import { type CompiledRule, compileFirewall } from '../../domain/firewall.ts'
import { EngineError } from '../../engines/engine.ts'
import type { Queryable } from '../../postgres/database.ts'
import { backoffMs } from '../../runner/backoff.ts'
import { withinLimit } from '../../runner/limit.ts'
import type { Services } from '../../services.ts'
import {
  claimOutdated,
  type OutdatedScope,
  type OutdatedVm,
  recordTriedFirewalls,
  type TriedFirewall,
} from '../../store/network/firewall-queue.ts'
import { firewallOfNetwork, type NetworkFirewall } from '../../store/network/firewalls.ts'
import { engineAt } from '../engine-work.ts'

/** How many VMs are updated at the same time. */
const vmsAtOnce = 32
/** An engine call that hangs delays only the VMs that are updated at the same time, for at most this time. */
const callMs = 10_000
/** The retry interval of a VM on a host that is down. The host counts as up only after its firewalls are applied. */
const unreachablePauseMs = 60_000

interface FirewalledVm {
  id: string
  network_id: string
  subnet_id: string
  private_address: string
  public_address: string | null
}

export async function compileFor(db: Queryable, vm: FirewalledVm): Promise<CompiledRule[]> {
  return compile(await firewallOfNetwork(db, vm.network_id), vm)
}

export const compile = ({ rules, resolved }: NetworkFirewall, vm: FirewalledVm): CompiledRule[] =>
  compileFirewall(
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

/** Applies the wanted firewall to VMs that are due. Returns how many VMs were due. */
export async function applyDue(
  services: Services,
  scope: OutdatedScope,
  signal: AbortSignal,
): Promise<number> {
  const vms = await claimOutdated(services.database, scope, vmsAtOnce)
  await applyFirewalls(services, vms, signal)
  return vms.length
}

/**
 * Applies the wanted firewall to claimed VMs concurrently, and writes the result of each. Operations that change
 * rules call this for one network; the reconciler calls it for all networks. There is no other way for changed
 * rules to reach the engine of a VM that stays defined; a start applies the rules itself.
 */
export async function applyFirewalls(
  services: Services,
  vms: OutdatedVm[],
  signal: AbortSignal,
): Promise<void> {
  if (vms.length === 0) return
  // The rules are read after the claim, so that they are at least as new as the generation of the call.
  const firewalls = await Promise.all(
    vms.map(({ network_id }) => firewallOfNetwork(services.database, network_id)),
  )
  const problems: unknown[] = []
  const tried = await Promise.all(
    vms.map(async (vm, index): Promise<TriedFirewall> => {
      if (!vm.is_reachable) return { id: vm.id, generation: 0, pauseMs: unreachablePauseMs }
      const applied = { id: vm.id, generation: vm.firewall_wanted, pauseMs: 0 }
      try {
        const rules = compile(firewalls[index]!, vm)
        await withinLimit(signal, callMs, (limit) => applyFirewall(services, vm, rules, limit))
        return applied
      } catch (error) {
        const kind = error instanceof EngineError ? error.kind : undefined
        // The VM is not defined, so there is no guest to protect; the step that defines it again applies its
        // rules.
        if (kind === 'missing') return applied
        // Stale means that another process applied a newer firewall.
        if (kind !== 'stale') problems.push(error)
        return { id: vm.id, generation: 0, pauseMs: backoffMs(vm.firewall_attempts) }
      }
    }),
  )
  await recordTriedFirewalls(services.database, tried)
  if (problems.length > 0)
    services.log.warn({ err: problems[0], vms: problems.length }, 'firewalls not applied')
}

async function applyFirewall(
  services: Services,
  vm: OutdatedVm,
  rules: CompiledRule[],
  signal: AbortSignal,
): Promise<void> {
  const engine = engineAt(services, vm.location)
  const generation = vm.firewall_wanted
  await engine.applyFirewall(vm, rules, { generation, signal })
  const appliedGeneration = (await engine.inspectVm(vm, signal))?.firewallGeneration ?? generation
  if (appliedGeneration < generation)
    throw new EngineError('unavailable', 'the engine did not apply the firewall')
}
