import { parseCidr } from '@slipway/contract'
import { numberToAddress } from '../../domain/addresses.ts'
import type { CompiledRule } from '../../domain/firewall.ts'
import { EngineError } from '../engine.ts'
import { InOrder } from '../in-order.ts'
import { isCode } from './client.ts'
import type { IncusContext } from './context.ts'
import { unavailable } from './instances.ts'

interface AclRule {
  action: 'allow' | 'drop'
  source: string
  destination: string
  protocol: string
  source_port?: string
  destination_port?: string
  /** The VM's id: its rules are found and replaced by it. */
  description: string
  state: 'enabled'
}

interface Acl {
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
const writesTried = 10

/** The rules of one VM in the words of Incus: drops come first there, too. */
export function aclRules(vm: ProtectedVm, rules: CompiledRule[]): Pick<Acl, 'ingress' | 'egress'> {
  const own = `${vm.privateAddress}/32`
  const of = (direction: CompiledRule['direction']) =>
    rules
      .filter((rule) => rule.direction === direction)
      .flatMap((rule) => {
        // What passes between guests of one bridge is decided by the receiver's rules: Incus takes the first rule that
        // allows, and the sender's would do.
        const isAllowedOut = direction === 'egress' && rule.action === 'allow'
        const peers = isAllowedOut ? rule.peers.flatMap((peer) => without(peer, vm.subnetCidr)) : rule.peers
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
  return { ingress: of('ingress'), egress: of('egress') }
}

const ports = (key: 'source_port' | 'destination_port', ranges: [number, number][]) =>
  ranges.length === 0
    ? {}
    : { [key]: ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(',') }

/** The blocks of `block` that are outside `hole`. */
export function without(block: string, hole: string): string[] {
  const [all, inner] = [parseCidr(block), parseCidr(hole)]
  if (!all || !inner) return []
  const isInside = (part: { base: number; prefix: number }, whole: { base: number; prefix: number }) =>
    part.prefix >= whole.prefix &&
    Math.floor(part.base / 2 ** (32 - whole.prefix)) === Math.floor(whole.base / 2 ** (32 - whole.prefix))
  if (isInside(all, inner)) return []
  if (!isInside(inner, all)) return [`${numberToAddress(all.base)}/${all.prefix}`]
  const prefix = all.prefix + 1
  const halves = [all.base, all.base + 2 ** (32 - prefix)]
  return halves.flatMap((base) => without(`${numberToAddress(base)}/${prefix}`, hole))
}

/**
 * What a VM's rules are put in the place of: its own, and those of a removed VM that had its address. Incus changes no
 * ACL while a member of its cluster is away, so a removal may have left some.
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

/** Incus tells every member of a change, and takes it back when one cannot be told. */
const isMemberAway = (error: unknown) =>
  /peer node \S+ is down|failed to (connect to|notify) peer/i.test((error as Error).message)

/**
 * All rules of a bridge are one ACL, since adding an ACL to a network takes Incus a second; each VM's rules stand there
 * with their generation. Incus lets several writers of one ACL win at once, so whoever wrote looks whether it stands; what
 * is overwritten later shows in inspection, by its generation, and is applied again.
 */
export class Firewalls {
  readonly #ctx: IncusContext
  readonly #writes = new InOrder()

  constructor(ctx: IncusContext) {
    this.#ctx = ctx
  }

  /** 0 where no rules of the VM are in force. */
  async generation(vm: Pick<ProtectedVm, 'id' | 'bridge'>, signal: AbortSignal): Promise<number> {
    const acl = await this.#ctx.client.find<Acl>(pathOf(vm.bridge), { signal })
    return acl ? firewallGeneration(acl.value, vm.id) : 0
  }

  /** Returns false where a newer firewall is in force, which stays. */
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

  /** What a member that is away keeps from going lets nobody in: the next VM of the address takes it away. */
  async remove({ id, bridge }: Pick<ProtectedVm, 'id' | 'bridge'>, signal: AbortSignal): Promise<void> {
    if (bridge === '' || (await this.generation({ id, bridge }, signal)) === 0) return
    await this.#write(bridge, id, Number.POSITIVE_INFINITY, signal, (acl) => {
      const { [generationKey(id)]: _, ...config } = acl.config
      const others = (rules: AclRule[]) => rules.filter(({ description }) => description !== id)
      return { ingress: others(acl.ingress), egress: others(acl.egress), config }
    }).catch((error) => {
      if (!isMemberAway(error)) throw error
    })
  }

  /** The writers of one process take turns. */
  #write(
    bridge: string,
    vmId: string,
    generation: number,
    signal: AbortSignal,
    change: (acl: Acl) => Omit<Acl, 'description'>,
  ): Promise<boolean> {
    return this.#writes.do(bridge, () => this.#writeAlone(bridge, vmId, generation, signal, change))
  }

  async #writeAlone(
    bridge: string,
    vmId: string,
    generation: number,
    signal: AbortSignal,
    change: (acl: Acl) => Omit<Acl, 'description'>,
  ): Promise<boolean> {
    for (let tries = 0; tries < writesTried; tries++) {
      const found = await this.#ctx.client.find<Acl>(pathOf(bridge), { signal })
      if (!found) throw new EngineError('missing', `no such network: ${bridge}`)
      const known = firewallGeneration(found.value, vmId)
      const wanted = change(found.value)
      const key = generationKey(vmId)
      if (known > generation) return false
      if (tries > 0 && wanted.config[key] === found.value.config[key]) return true
      const body = { description: found.value.description, ...wanted }
      try {
        await this.#ctx.client.change('PUT', pathOf(bridge), body, { signal, ifMatch: found.etag })
      } catch (error) {
        // The same rules stand already, on every member that answers.
        if (isMemberAway(error) && known === generation) return true
        if (!isCode(error, 412)) throw unavailable(error)
      }
    }
    throw new EngineError(
      'unavailable',
      `the firewall of ${vmId} was overwritten ${writesTried} times in a row`,
    )
  }
}

export const firewallGeneration = (acl: Pick<Acl, 'config'>, vmId: string): number =>
  Number(acl.config[generationKey(vmId)] ?? 0)

export const listAcls = (ctx: IncusContext, signal: AbortSignal) =>
  ctx.client.get<(Acl & { name: string })[]>('/1.0/network-acls', { signal, query: { recursion: '1' } })
