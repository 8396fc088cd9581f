import { addressCount, blockContains, type Cidr, parseCidr } from '@slipway/contract'
import { numberToAddress } from '../../domain/addresses.ts'
import type { CompiledRule } from '../../domain/firewall.ts'
import { EngineError } from '../engine.ts'
import { InOrder } from '../in-order.ts'
import { isCode, unavailable } from './client.ts'
import type { IncusContext } from './context.ts'
import { saysMemberDown } from './error-texts.ts'

interface AclRule {
  action: 'allow' | 'drop'
  source: string
  destination: string
  protocol: string
  source_port?: string
  destination_port?: string
  /** The VM's id, which identifies the rules that a later change replaces. */
  description: string
  state: 'enabled'
}

export interface Acl {
  description: string
  config: Record<string, string>
  ingress: AclRule[]
  egress: AclRule[]
}

export interface ProtectedVm {
  id: string
  bridge: string
  privateAddress: string
  subnetCidr: string
}

const generationKey = (vmId: string) => `user.slipway.firewall.${vmId}`
const pathOf = (bridge: string) => `/1.0/network-acls/${bridge}`
const maxAttempts = 10
const writeMs = 30_000

/** A change of the rules of one VM that has not been written. */
interface AclChange {
  vmId: string
  generation: number
  signal: AbortSignal
  rewrite: (acl: Acl) => Omit<Acl, 'description'>
  /** False if the ACL has newer rules. */
  resolve: (isNewest: boolean) => void
  reject: (error: unknown) => void
}

/** Returns the rules of one VM in the format of Incus. Incus, like Slipway, evaluates drop rules first. */
function aclRules(vm: ProtectedVm, rules: CompiledRule[]): Pick<Acl, 'ingress' | 'egress'> {
  const own = `${vm.privateAddress}/32`
  const aclRulesFor = (direction: CompiledRule['direction']) =>
    rules
      .filter((rule) => rule.direction === direction)
      .flatMap((rule) => {
        // Traffic between guests of one bridge must depend on the receiver's rules, but Incus applies the
        // first allow rule, which could be the sender's. So the sender's allow rules exclude the subnet.
        const isAllowedOut = direction === 'egress' && rule.action === 'allow'
        const peers = isAllowedOut
          ? rule.peers.flatMap((peer) => blocksOutside(parseCidr(peer), parseCidr(vm.subnetCidr)))
          : rule.peers
        if (peers.length === 0) return []
        const [source, destination] = direction === 'ingress' ? [peers, [own]] : [[own], peers]
        return rule.protocols.map(
          (protocol): AclRule => ({
            action: rule.action === 'deny' ? 'drop' : 'allow',
            source: source.join(','),
            destination: destination.join(','),
            protocol: protocol === 'icmp' ? 'icmp4' : protocol,
            ...(protocol !== 'icmp' && ports('source_port', rule.sourcePorts)),
            ...(protocol !== 'icmp' && ports('destination_port', rule.destinationPorts)),
            description: vm.id,
            state: 'enabled',
          }),
        )
      })
  return { ingress: aclRulesFor('ingress'), egress: aclRulesFor('egress') }
}

const ports = (key: 'source_port' | 'destination_port', ranges: [number, number][]) =>
  ranges.length === 0
    ? {}
    : { [key]: ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(',') }

/** Returns the parts of `block` that are outside `hole`. */
function blocksOutside(block: Cidr | null, hole: Cidr | null): string[] {
  if (!block || !hole || blockContains(hole, block)) return []
  if (!blockContains(block, hole)) return [`${numberToAddress(block.base)}/${block.prefix}`]
  const prefix = block.prefix + 1
  const halves = [block.base, block.base + addressCount(prefix)]
  return halves.flatMap((base) => blocksOutside({ base, prefix }, hole))
}

/**
 * Returns the ACL without the rules of this VM and of any removed VM that had the same address. Incus does
 * not change ACLs while a member of the cluster is down, so the rules of a removed VM may remain.
 */
function withoutRulesOf(vm: ProtectedVm, acl: Acl): Omit<Acl, 'description'> {
  const own = `${vm.privateAddress}/32`
  const ingress = acl.ingress.filter(({ destination }) => destination !== own)
  const egress = acl.egress.filter(({ source }) => source !== own)
  const kept = new Set([...ingress, ...egress])
  const config = { ...acl.config }
  for (const rule of [...acl.ingress, ...acl.egress])
    if (!kept.has(rule)) delete config[generationKey(rule.description)]
  return { ingress, egress, config }
}

/**
 * All rules of a bridge are in one ACL, because adding an ACL to a network takes Incus a second. The ACL also
 * has the generation of each VM's rules. Incus can accept concurrent writes to one ACL, so each writer reads
 * the result back. Rules that are overwritten later have an old generation at the next inspection, and are
 * applied again.
 */
export class Firewalls {
  readonly #ctx: IncusContext
  readonly #writes = new InOrder()
  readonly #pending = new Map<string, AclChange[]>()

  constructor(ctx: IncusContext) {
    this.#ctx = ctx
  }

  /** Returns the generation of the applied rules; 0 if no rules of the VM are applied. */
  async generation(vm: Pick<ProtectedVm, 'id' | 'bridge'>, signal: AbortSignal): Promise<number> {
    const acl = await this.#ctx.client.find<Acl>(pathOf(vm.bridge), { signal })
    return acl ? firewallGeneration(acl, vm.id) : 0
  }

  /** Returns false, and keeps the applied firewall, if that is newer. */
  apply(vm: ProtectedVm, rules: CompiledRule[], generation: number, signal: AbortSignal): Promise<boolean> {
    const own = aclRules(vm, rules)
    return this.#write(vm.bridge, vm.id, generation, signal, (acl) => {
      const others = withoutRulesOf(vm, acl)
      return {
        ingress: [...others.ingress, ...own.ingress],
        egress: [...others.egress, ...own.egress],
        config: { ...others.config, [generationKey(vm.id)]: String(generation) },
      }
    })
  }

  /** Rules that remain because a member is down are harmless: the next VM with the address replaces them. */
  async remove({ id, bridge }: Pick<ProtectedVm, 'id' | 'bridge'>, signal: AbortSignal): Promise<void> {
    if (bridge === '' || (await this.generation({ id, bridge }, signal)) === 0) return
    await this.#write(bridge, id, Number.POSITIVE_INFINITY, signal, (acl) => {
      const { [generationKey(id)]: _, ...config } = acl.config
      const others = (rules: AclRule[]) => rules.filter(({ description }) => description !== id)
      return { ingress: others(acl.ingress), egress: others(acl.egress), config }
    }).catch((error) => {
      if (!saysMemberDown(error)) throw error
    })
  }

  /**
   * Within this process, writes to the same ACL run one after another. Changes that arrive in the meantime are
   * written together, because Incus takes about a second to write a large ACL.
   */
  #write(
    bridge: string,
    vmId: string,
    generation: number,
    signal: AbortSignal,
    rewrite: AclChange['rewrite'],
  ): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const change = { vmId, generation, signal, rewrite, resolve, reject }
      this.#pending.set(bridge, [...(this.#pending.get(bridge) ?? []), change])
      void this.#writes.do(bridge, () => this.#writePending(bridge))
    })
  }

  /** Writes the first pending change of each VM. */
  async #writePending(bridge: string): Promise<void> {
    const pending = (this.#pending.get(bridge) ?? []).filter(({ signal, reject }) => {
      if (signal.aborted) reject(signal.reason)
      return !signal.aborted
    })
    const batch = [...new Map(pending.toReversed().map((change) => [change.vmId, change])).values()]
    const later = pending.filter((change) => !batch.includes(change))
    if (later.length > 0) this.#pending.set(bridge, later)
    else this.#pending.delete(bridge)
    if (batch.length === 0) return
    await this.#writeBatch(bridge, batch).catch(async (error) => {
      if (batch.length === 1) return batch[0]!.reject(error)
      // One change may be the reason why Incus refused all of them. A change that was written is not repeated.
      for (const change of batch) {
        if (change.signal.aborted) change.reject(error)
        else await this.#writeBatch(bridge, [change]).catch(change.reject)
      }
    })
  }

  async #writeBatch(bridge: string, batch: AclChange[]): Promise<void> {
    const signal = AbortSignal.timeout(writeMs)
    let open = batch
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const found = await this.#ctx.client.findTagged<Acl>(pathOf(bridge), { signal })
      if (!found) throw new EngineError('missing', `no such network: ${bridge}`)
      const { value: acl, etag } = found
      open = open.filter((change) => !isSettled(acl, change, attempt > 0))
      if (open.length === 0) return
      const body = open.reduce((now, { rewrite }) => ({ ...rewrite(now), description: acl.description }), acl)
      try {
        await this.#ctx.client.change('PUT', pathOf(bridge), body, { signal, ifMatch: etag })
      } catch (error) {
        if (saysMemberDown(error)) {
          // Every member that responds already has these rules.
          const applied = open.filter(({ vmId, generation }) => firewallGeneration(acl, vmId) === generation)
          for (const { resolve } of applied) resolve(true)
          open = open.filter((change) => !applied.includes(change))
          if (open.length === 0) return
        }
        if (!isCode(error, 412)) throw unavailable(error)
      }
    }
    const ids = open.map(({ vmId }) => vmId).join(', ')
    throw new EngineError(
      'unavailable',
      `the firewall of VM ${ids} could not be written: other processes changed its bridge's rules during each of ${maxAttempts} attempts`,
    )
  }
}

/** Returns true, and resolves the change, if the ACL has it already or has newer rules of the VM. */
function isSettled(acl: Acl, { vmId, generation, rewrite, resolve }: AclChange, isWritten: boolean): boolean {
  const key = generationKey(vmId)
  const isNewer = firewallGeneration(acl, vmId) > generation
  if (!isNewer && !(isWritten && rewrite(acl).config[key] === acl.config[key])) return false
  resolve(!isNewer)
  return true
}

export const firewallGeneration = (acl: Pick<Acl, 'config'>, vmId: string): number =>
  Number(acl.config[generationKey(vmId)] ?? 0)

export const listAcls = (ctx: IncusContext, signal: AbortSignal) =>
  ctx.client.get<(Acl & { name: string })[]>('/1.0/network-acls', { signal, query: { recursion: '1' } })
