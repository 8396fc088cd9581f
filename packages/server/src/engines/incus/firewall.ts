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

  /** Within this process, writes to the same ACL run one after another. */
  #write(
    bridge: string,
    vmId: string,
    generation: number,
    signal: AbortSignal,
    change: (acl: Acl) => Omit<Acl, 'description'>,
  ): Promise<boolean> {
    return this.#writes.do(bridge, async () => {
      for (let attempt = 0; attempt < maxAttempts; attempt++) {
        const found = await this.#ctx.client.findTagged<Acl>(pathOf(bridge), { signal })
        if (!found) throw new EngineError('missing', `no such network: ${bridge}`)
        const { value: acl, etag } = found
        const known = firewallGeneration(acl, vmId)
        if (known > generation) return false
        const wanted = change(acl)
        const key = generationKey(vmId)
        if (attempt > 0 && wanted.config[key] === acl.config[key]) return true
        const body = { description: acl.description, ...wanted }
        try {
          await this.#ctx.client.change('PUT', pathOf(bridge), body, { signal, ifMatch: etag })
        } catch (error) {
          // Every member that responds already has these rules.
          if (saysMemberDown(error) && known === generation) return true
          if (!isCode(error, 412)) throw unavailable(error)
        }
      }
      throw new EngineError(
        'unavailable',
        `the firewall of VM ${vmId} could not be written: other processes changed its bridge's rules during each of ${maxAttempts} attempts`,
      )
    })
  }
}

export const firewallGeneration = (acl: Pick<Acl, 'config'>, vmId: string): number =>
  Number(acl.config[generationKey(vmId)] ?? 0)

export const listAcls = (ctx: IncusContext, signal: AbortSignal) =>
  ctx.client.get<(Acl & { name: string })[]>('/1.0/network-acls', { signal, query: { recursion: '1' } })
