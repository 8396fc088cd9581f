import type { GpuCheck, GpuReport, HostReport } from '../../engine.ts'
import { largestShare } from '../../gpu-models.ts'
import { agentReportOf, generationOfVersion } from '../agent/guest-network.ts'
import { isLocalBridge } from '../agent/local-networks.ts'
import { asCompleted } from '../as-completed.ts'
import type { IncusContext } from '../context.ts'
import { type Acl, firewallGeneration, listAcls } from '../firewall.ts'
import { type Instance, instanceName, listInstances, marks } from '../instances.ts'
import { agentCommand } from '../networks.ts'
import type { Statuses } from '../status.ts'
import type { Captures } from '../storage/captures.ts'
import type { Disks } from '../storage/disks.ts'
import { lacksLimits, limitsAdvice } from '../traffic-control.ts'
import { isCordoned } from './cordon.ts'
import type { Member, MemberList } from './members.ts'
import { problemsOf } from './problems.ts'
import { type CardReport, gpusOf, type Resources } from './resources.ts'
import type { Survey } from './survey.ts'

/** Lists what the storage pools contain. */
interface StorageLists {
  disks: Disks
  captures: Captures
}

export interface Cluster extends MemberList {
  /** The version of Incus. */
  version: string
  /** The uplink of OVN networks, if there is one. */
  uplink: string | undefined
}

type CheckedCard = CardReport & { isReady: boolean }

const maxConcurrentMembers = 16
const objectsMs = 6_000

/** Set on a member once its kernel is known to filter traffic between guests on the same bridge. */
export const filtersMark = 'user.slipway.filters-internal'

/**
 * Yields one report for each member that responds, and an `isUnreachable` report for each member that Incus
 * considers down. Instances, firewalls and disks are read once for all members, because listing one member's
 * instances costs Incus as much as listing all. The hardware is read from several members at a time, so that
 * a member that hangs delays only its own report. The reports are summaries if the instances cannot be read
 * because a member hangs or, with `mayBeBrief`, if nothing has changed.
 */
export async function* inventory(
  ctx: IncusContext,
  statuses: Statuses,
  stored: StorageLists,
  survey: Survey,
  { members, isCluster, version, uplink }: Cluster,
  mayBeBrief: boolean,
  signal: AbortSignal,
): AsyncIterable<HostReport> {
  for (const { name, status } of members) if (!isResponding(status)) yield unreachableReport(name, status)
  const isBrief = mayBeBrief && survey.isCurrent(members)
  const objects = isBrief
    ? null
    : await survey.read(members, () => readObjects(ctx, stored, signal)).catch(() => null)
  const networking = {
    hasOvn: uplink !== undefined,
    hasAgents: members.some(({ config }) => agentReportOf(config)),
  }
  // Disks and copies are not assigned to hosts: all of them are reported with the first host.
  let remaining = objects?.volumes ?? []
  let copies = objects?.copies ?? []
  const instancesAt = byMember(objects?.instances ?? [])
  const responding = members.filter(({ status }) => isResponding(status))
  const described = asCompleted(responding, maxConcurrentMembers, async (member) => ({
    member,
    resources: await survey.resourcesOf(isCluster ? member.name : null, signal),
  }))
  for await (const { member, resources } of described) {
    const listedHere = (isCluster ? instancesAt.get(member.name) : objects?.instances) ?? []
    // If a member does not respond, Incus lists its instances without their configuration.
    if (!resources || listedHere.some(({ config }) => !config)) continue
    const marked = listedHere.filter(({ config }) => config[marks.id])
    // A copy of an instance has the same marks. It is not a VM, but it may hold GPUs.
    const own = marked.filter(({ name, config }) => name === instanceName(config[marks.id]!))
    if (objects) survey.problems.set(member.name, problemsOf(marked))
    const problems = [...(survey.problems.get(member.name) ?? []), ...limitsProblem(ctx, member, networking)]
    const hardware = {
      name: member.name,
      ...(!isAccepting(ctx, member, networking) && { isClosed: true }),
      ...(isCluster && { isCordoned: isCordoned(member) }),
      cpuCores: resources.cpu.total,
      memoryGb: Math.floor(resources.memory.total / 1024 ** 3),
      ...declaredShare(ctx),
      capabilities: capabilitiesOf(ctx, member, version, networking),
    }
    if (problems.length > 0) Object.assign(hardware.capabilities, { problems })
    const checks = agentReportOf(member.config)?.gpuChecks
    const gpus = cards(ctx, resources, checks).map((card) => gpuReport(card, marked))
    if (!objects) {
      yield { ...hardware, isSummary: true, gpus: gpus.map(unknownHolder), vms: [], disks: [] }
      continue
    }
    yield {
      ...hardware,
      gpus,
      // The power state of an instance with the status `Error` is unknown, but it may still hold its GPUs.
      vms: own
        .filter(({ status }) => status !== 'Error')
        .map((instance) => statuses.forInventory(instance, generationAt(member, objects.aclOf, instance))),
      disks: remaining,
      captures: copies,
    }
    remaining = []
    copies = []
  }
}

async function readObjects(ctx: IncusContext, { disks, captures }: StorageLists, stopping: AbortSignal) {
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(objectsMs)])
  const [instances, acls, volumes, copies] = await Promise.all([
    listInstances(ctx, signal),
    listAcls(ctx, signal),
    disks.list(signal),
    captures.list(signal),
  ])
  return { instances, volumes, copies, aclOf: new Map(acls.map((acl) => [acl.name, acl])) }
}

function byMember(instances: Instance[]): Map<string, Instance[]> {
  const found = new Map<string, Instance[]>()
  for (const instance of instances) {
    const known = found.get(instance.location)
    if (known) known.push(instance)
    else found.set(instance.location, [instance])
  }
  return found
}

const unknownHolder = (gpu: GpuReport): GpuReport => ({ ...gpu, holderVmId: null, isClean: false })

/** An evacuated member responds, but accepts no VMs; Offline and Blocked members do not respond. */
const isResponding = (status: string) => status === 'Online' || status === 'Evacuated'

const unreachableReport = (name: string, status: string): HostReport => ({
  ...{ name, isUnreachable: true, cpuCores: 0, memoryGb: 0, gpus: [], vms: [], disks: [] },
  capabilities: { not_enforced: [`the member is ${status.toLowerCase()}`] },
})

/** Test containers share one machine, so the reported cores and memory are derived from the declared GPUs. */
function declaredShare(ctx: IncusContext): { cpuCores: number; memoryGb: number } | object {
  const gpuCount = ctx.config.gpus.reduce((sum, { count }) => sum + count, 0)
  if (gpuCount === 0) return {}
  return { cpuCores: gpuCount * largestShare.cpuCores, memoryGb: gpuCount * largestShare.memoryGb }
}

type Checks = Record<string, GpuCheck> | undefined

/**
 * Returns the GPUs of a member. Declared GPUs, which exist only in the configuration, pass their check. A GPU
 * that the agent has not checked since its last instance released it is not ready.
 */
function cards(ctx: IncusContext, resources: Resources, checks: Checks): CheckedCard[] {
  const declared = ctx.config.gpus.flatMap(({ model, count }) => Array<string>(count).fill(model))
  if (declared.length === 0)
    return gpusOf(resources).map((card) => {
      const check = checks?.[card.pciAddress]
      return { ...card, ...(check && { check }), isReady: !checks || check !== undefined }
    })
  return declared.map((model, index) => ({
    pciAddress: `0000:${(0x10 + index).toString(16)}:00.0`,
    ...{ model, numaNode: 0, iommuGroup: index },
    ...{ check: { passed: true, reasons: [] }, isReady: true },
  }))
}

/** A GPU is clean if no instance has it, because the kernel resets it when an instance releases it. */
function gpuReport({ isReady, ...card }: CheckedCard, instances: Instance[]): GpuReport {
  const holder = instances.find(({ config }) => config[marks.gpus]?.split(' ').includes(card.pciAddress))
  return { ...card, holderVmId: holder?.config[marks.id] ?? null, isClean: !holder && isReady }
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

/** How the members of a location create networks. */
interface Networking {
  hasOvn: boolean
  hasAgents: boolean
}

const lacksAgent = ({ config }: Member, { hasOvn, hasAgents }: Networking) =>
  hasAgents && !hasOvn && !agentReportOf(config)

const limitsProblem = (ctx: IncusContext, member: Member, { hasOvn }: Networking): string[] =>
  lacksLimits(ctx, member, hasOvn)
    ? [`accepts no new VMs: the kernel cannot limit the bandwidth of VMs: ${limitsAdvice}`]
    : []

const isAccepting = (ctx: IncusContext, member: Member, networking: Networking) =>
  member.status === 'Online' &&
  !lacksAgent(member, networking) &&
  !lacksLimits(ctx, member, networking.hasOvn) &&
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
      ? [`the member has no agent, but other members do: ${agentCommand}`]
      : []),
    ...(member.status === 'Evacuated' ? ['the member is evacuated'] : []),
    ...(hasOvn ? ['a guest can send packets from another address of its subnet'] : []),
    ...(hasOvn || filtersInternal(member)
      ? []
      : [
          'filtering between guests of one subnet is not confirmed: run slipway-server doctor --engine incus on this host',
        ]),
    ...(ctx.config.instanceType === 'container'
      ? ['guests are containers, which are for tests: they share the kernel of the host and get no GPUs']
      : []),
  ]
  return {
    incus: version,
    guests: ctx.config.instanceType,
    network: hasOvn ? 'ovn' : 'bridge',
    not_enforced: problems,
  }
}
