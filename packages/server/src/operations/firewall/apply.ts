import { type CompiledRule, compileFirewall } from '../../domain/firewall.ts'
import { EngineError } from '../../engines/engine.ts'
import type { Queryable } from '../../postgres/database.ts'
import { backoffMs } from '../../runner/backoff.ts'
import { withinLimit } from '../../runner/limit.ts'
import type { Services } from '../../services.ts'
import {
  type BehindScope,
  type BehindVm,
  claimBehind,
  settleFirewalls,
  type TriedFirewall,
} from '../../store/network/firewall-queue.ts'
import { firewallOfNetwork, type NetworkFirewall } from '../../store/network/firewalls.ts'
import { engineAt } from '../engine-work.ts'

/** So many VMs are brought up to date at once. */
const batch = 32
/** An engine that hangs costs this much, and only the VMs that are tried together. */
const callMs = 10_000
/** Whoever cannot be reached is looked at now and then; its host, when it is back, does not wait for that. */
const unreachablePauseMs = 60_000

interface FirewalledVm {
  id: string
  network_id: string
  subnet_id: string
  private_address: string
  public_address: string | null
}

/** What the engine is to enforce for this VM, from the rules as they now are. */
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

/** Brings some VMs that are due up to their wanted firewall. Returns how many it took up: 0 when none is due. */
export async function applyDue(services: Services, scope: BehindScope, signal: AbortSignal): Promise<number> {
  const vms = await claimBehind(services.database, scope, batch)
  await applyFirewalls(services, vms, signal)
  return vms.length
}

/**
 * Brings claimed VMs up to their wanted firewall, all at once, and writes what became of each. The only way that rules
 * reach engines once a VM exists: rule changes take it for their network, the reconciler for all.
 */
export async function applyFirewalls(
  services: Services,
  vms: BehindVm[],
  signal: AbortSignal,
): Promise<void> {
  if (vms.length === 0) return
  // Read after the claim: these rules are at least as new as the generation that they are applied under.
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
        // There is no guest to protect, and whoever defines the VM again applies the rules of that time.
        if (kind === 'missing') return applied
        // Stale: somebody applied a newer one.
        if (kind !== 'stale') problems.push(error)
        return { id: vm.id, generation: 0, pauseMs: backoffMs(vm.firewall_attempts) }
      }
    }),
  )
  await settleFirewalls(services.database, tried)
  if (problems.length > 0)
    services.log.warn({ err: problems[0], vms: problems.length }, 'firewalls not applied')
}

async function applyFirewall(
  services: Services,
  vm: BehindVm,
  rules: CompiledRule[],
  signal: AbortSignal,
): Promise<void> {
  const engine = engineAt(services, vm.location)
  const generation = vm.firewall_wanted
  await engine.applyFirewall(vm, rules, { generation, signal })
  const inForce = (await engine.inspectVm(vm, signal))?.firewallGeneration ?? generation
  if (inForce < generation) throw new EngineError('unavailable', 'the engine did not apply the firewall')
}
