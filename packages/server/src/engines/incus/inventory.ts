import type { GpuReport, HostReport } from '../engine.ts'
import { largestShare } from '../gpu-models.ts'
import { agentReportOf, generationOfVersion } from './agent/guest-network.ts'
import { isLocalBridge } from './agent/local-networks.ts'
import type { IncusContext } from './context.ts'
import { isCordoned } from './cordon.ts'
import type { Disks } from './disks.ts'
import { type Acl, firewallGeneration, listAcls } from './firewall.ts'
import { type Instance, listInstances, marks } from './instances.ts'
import { listMembers, type Member, serverInfo } from './members.ts'
import { agentCommand, findUplink } from './networks.ts'
import { type CardReport, gpusOf, type Resources, readResources } from './resources.ts'
import type { Statuses } from './status.ts'

const maxConcurrentMembers = 16

/** Set on a member once its kernel is known to filter traffic between guests of one bridge. */
export const filtersMark = 'user.slipway.filters-internal'

/**
 * One report for each member that answers, and an `isUnreachable` report for each that Incus considers down. Instances, firewalls
 * and disks are read once for all: a list of one member's instances costs Incus as much as the list of all. The hardware is
 * read from each member, some at a time, so that a member that hangs delays only its own report.
 */
export async function* inventory(
  ctx: IncusContext,
  statuses: Statuses,
  disks: Disks,
  signal: AbortSignal,
): AsyncIterable<HostReport> {
  const [{ members, isCluster }, { environment }, uplink] = await Promise.all([
    listMembers(ctx, signal),
    serverInfo(ctx, signal),
    findUplink(ctx, signal),
  ])
  const hasOvn = uplink !== undefined
  const hasAgents = members.some(({ config }) => agentReportOf(config))
  for (const { name, status } of members) if (!isAnswering(status)) yield awayReport(name, status)
  const [instances, acls, volumes] = await Promise.all([
    listInstances(ctx, signal),
    listAcls(ctx, signal),
    disks.list(signal),
  ])
  const aclOf = new Map(acls.map((acl) => [acl.name, acl]))
  // Disks are not assigned to hosts: all of them are reported with the first host.
  let remaining = volumes
  const answering = members.filter(({ status }) => isAnswering(status))
  const described = inOrderOfArrival(answering, maxConcurrentMembers, async (member) => ({
    member,
    resources: await readResources(ctx, isCluster ? member.name : null, signal).catch(() => null),
  }))
  for await (const { member, resources } of described) {
    if (!resources) continue
    const own = instances.filter(
      ({ location, config }) => (!isCluster || location === member.name) && config[marks.id],
    )
    yield {
      name: member.name,
      ...(!isAccepting(ctx, member, { hasOvn, hasAgents }) && { isClosed: true }),
      ...(isCluster && { isCordoned: isCordoned(member) }),
      cpuCores: resources.cpu.total,
      memoryGb: Math.floor(resources.memory.total / 1024 ** 3),
      ...declaredShare(ctx),
      capabilities: capabilitiesOf(ctx, member, environment.server_version, { hasOvn, hasAgents }),
      gpus: cards(ctx, resources).map((card) => gpuReport(card, own)),
      // The state of an instance in `Error` is unknown, but it may still hold its GPUs.
      vms: own
        .filter(({ status }) => status !== 'Error')
        .map((instance) => statuses.listed(instance, generationAt(member, aclOf, instance))),
      disks: remaining,
    }
    remaining = []
  }
}

/** An evacuated member answers, but accepts no VMs; Offline and Blocked members do not answer. */
const isAnswering = (status: string) => status === 'Online' || status === 'Evacuated'

const awayReport = (name: string, status: string): HostReport => ({
  ...{ name, isUnreachable: true, cpuCores: 0, memoryGb: 0, gpus: [], vms: [], disks: [] },
  capabilities: { not_enforced: [`the member is ${status.toLowerCase()}`] },
})

/** Containers share the machine of a test, so declared GPUs bring cores and memory with them. */
function declaredShare(ctx: IncusContext): { cpuCores: number; memoryGb: number } | object {
  const gpuCount = ctx.config.gpus.reduce((sum, { count }) => sum + count, 0)
  if (gpuCount === 0) return {}
  return { cpuCores: gpuCount * largestShare.cpuCores, memoryGb: gpuCount * largestShare.memoryGb }
}

function cards(ctx: IncusContext, resources: Resources): CardReport[] {
  const declared = ctx.config.gpus.flatMap(({ model, count }) => Array<string>(count).fill(model))
  if (declared.length === 0) return gpusOf(resources)
  return declared.map((model, index) => ({
    pciAddress: `0000:${(0x10 + index).toString(16)}:00.0`,
    ...{ model, numaNode: 0, iommuGroup: index },
  }))
}

/** A GPU is clean if no instance has it: the kernel resets it when the last one releases it. */
function gpuReport(card: CardReport, instances: Instance[]): GpuReport {
  const holder = instances.find(({ config }) => config[marks.gpus]?.split(' ').includes(card.pciAddress))
  return { ...card, holderVmId: holder?.config[marks.id] ?? null, isClean: !holder }
}

/** The generation of the firewall that applies to an instance of this member. */
function generationAt(member: Member, aclOf: Map<string, Acl>, { config }: Instance): number {
  const [id, bridge] = [config[marks.id]!, config[marks.bridge] ?? '']
  if (isLocalBridge(bridge)) return generationOfVersion(agentReportOf(member.config)?.applied[id])
  const acl = aclOf.get(bridge)
  return acl ? firewallGeneration(acl, id) : 0
}

export const filtersInternal = ({ config }: Pick<Member, 'config'>) =>
  agentReportOf(config)?.filtersInternal ?? config[filtersMark] === 'true'

/** How the members of a location make networks. */
interface Networking {
  hasOvn: boolean
  hasAgents: boolean
}

const lacksAgent = ({ config }: Member, { hasOvn, hasAgents }: Networking) =>
  hasAgents && !hasOvn && !agentReportOf(config)

const isAccepting = (ctx: IncusContext, member: Member, networking: Networking) =>
  member.status === 'Online' &&
  !lacksAgent(member, networking) &&
  (networking.hasOvn || filtersInternal(member) || ctx.config.allowUnfilteredInternal)

function capabilitiesOf(
  ctx: IncusContext,
  member: Member,
  version: string,
  networking: Networking,
): Record<string, unknown> {
  const { hasOvn } = networking
  const problems = [
    ...(lacksAgent(member, networking)
      ? [`the member has no agent, but other members have: ${agentCommand}`]
      : []),
    ...(member.status === 'Evacuated' ? ['the member is evacuated'] : []),
    ...(hasOvn ? ['a guest can send from another address of its own subnet'] : []),
    ...(hasOvn || filtersInternal(member)
      ? []
      : [
          'filtering between guests of one subnet is not confirmed: run slipway-server doctor --engine incus on this host',
        ]),
    ...(ctx.config.instanceType === 'container'
      ? ['guests are containers, for tests: no kernel of their own, no GPUs']
      : []),
  ]
  return {
    incus: version,
    guests: ctx.config.instanceType,
    network: hasOvn ? 'ovn' : 'bridge',
    not_enforced: problems,
  }
}

/** Yields results as they arrive, with at most `most` calls at the same time. */
async function* inOrderOfArrival<T, R>(
  items: T[],
  most: number,
  work: (item: T) => Promise<R>,
): AsyncIterable<R> {
  const underWay = new Map<T, Promise<{ item: T; result: R }>>()
  const waiting = [...items]
  while (waiting.length > 0 || underWay.size > 0) {
    for (const item of waiting.splice(0, most - underWay.size))
      underWay.set(
        item,
        work(item).then((result) => ({ item, result })),
      )
    const { item, result } = await Promise.race(underWay.values())
    underWay.delete(item)
    yield result
  }
}
