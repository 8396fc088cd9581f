import { setTimeout as delay } from 'node:timers/promises'
import type { FailureCode } from '@slipway/contract'
import { Failure } from '../../domain/failure.ts'
import { EngineError } from '../../engines/engine.ts'
import type { Tx } from '../../postgres/database.ts'
import { done, fail, type Outcome, type Step, type Work, wait } from '../../runner/operation.ts'
import { logStep } from '../../runner/step-log.ts'
import {
  type BootFailure,
  clearBootFailures,
  findGroup,
  type GroupRow,
  listBootFailures,
  lockGroup,
  type MemberRow,
} from '../../store/compute/instance-groups.ts'
import { endOperations, vmRecordAsResult } from '../../store/compute/operation-changes.ts'
import { lockParkedOperations } from '../../store/compute/operations.ts'
import { findVm } from '../../store/compute/vms.ts'
import { requeueBeforeRemoval } from '../capacity/boot-failures.ts'
import { CatalogueCache } from '../catalogue.ts'
import { nextInspectionMs } from '../engine-work.ts'
import { admitVmDelete } from '../vm/delete.ts'
import { finishNewDisks } from '../vm/new-disks.ts'
import { meterEarly, startVm } from '../vm/state.ts'
import { barrierGraceS } from './arrival.ts'
import { endGroupUpdate, lockGroupOf, requesterOf } from './group.ts'
import { admitMembers } from './members.ts'

/** When this time has passed since the first member responded, the members that have responded are billed. */
const freeMs = 300_000
/** How long an undo waits for the deletion of members before the undo is tried again. */
const removalMs = 5_000
const removalPauseMs = 100
const shortPauseMs = 100

export const barrierLimits: Pick<Step, 'graceS' | 'onDeadline'> = {
  graceS: barrierGraceS,
  onDeadline: { code: 'boot_failed', message: 'Not all members of the group responded in time.' },
}

/**
 * The step in which the new members of a group wait for each other. When all respond, one transaction moves them to running,
 * so that they are billed from the same moment. A member that does not boot is placed once more, on another host.
 */
export async function passBarrier(work: Work, tx: Tx): Promise<Outcome> {
  const group = await lockGroupOf(work, tx)
  const numbers = work.scratch.numbers as number[]
  const members = group.members.filter(({ number }) => numbers.includes(number))
  const failures = await listBootFailures(tx, group.id)
  // A member that fails a second time is not placed again.
  const final = failures.find(
    ({ number }, index) => failures.findIndex((each) => each.number === number) < index,
  )
  if (final) return failedFor(final)
  const missing = failures.filter(({ number }) => !members.some((member) => member.number === number))
  if (missing.length > 0) {
    const refusal = await placeAgain(work, tx, group, missing)
    return refusal ? failedFor(refusal) : wait(nextInspectionMs(startOf(work), work.nowMs))
  }
  const isWaiting = ({ state, booted_at }: MemberRow) => state === 'STATE_CREATING' && booted_at === null
  if (members.some(isWaiting)) {
    await billLongWait(work, tx, members)
    return wait(nextInspectionMs(startOf(work), work.nowMs))
  }
  if (!(await startMembers(work, tx, members))) return wait(shortPauseMs)
  await clearBootFailures(tx, group.id)
  return done(await endGroupUpdate(work, tx))
}

const startOf = ({ operation }: Work) => operation.started_at.getTime()

const failedFor = ({ code, message }: BootFailure) => fail(code as FailureCode, message)

/**
 * Repeats the admission of members that did not boot. Returns the first boot failure if there is no room for them.
 */
async function placeAgain(
  work: Work,
  tx: Tx,
  group: GroupRow,
  missing: BootFailure[],
): Promise<BootFailure | undefined> {
  const avoidedHosts = [
    ...missing.flatMap(({ host_id }) => host_id ?? []),
    ...(group.placement_policy === 'spread' ? group.members.flatMap(({ host_id }) => host_id ?? []) : []),
  ]
  const numbers = missing.map(({ number }) => number)
  try {
    await admitMembers(tx, new CatalogueCache(), requesterOf(work), group, { numbers, avoidedHosts })
    return undefined
  } catch (error) {
    if (error instanceof Failure) return missing[0]
    throw error
  }
}

/** Bills the members that have responded, so that a member cannot delay its response to let the others compute for free. */
async function billLongWait(work: Work, tx: Tx, members: MemberRow[]): Promise<void> {
  const arrived = members.filter(({ booted_at }) => booted_at !== null)
  const firstMs = Math.min(...arrived.map(({ booted_at }) => Date.parse(booted_at!)))
  if (work.nowMs - firstMs < (work.scratch.isFree === false ? 0 : freeMs)) return
  for (const { id } of arrived) {
    const vm = await findVm(tx, work.operation.project_id, id)
    if (vm) await meterEarly(tx, vm)
  }
}

/** Moves the members to running and ends their operations. Returns false if a worker holds one of these operations. */
async function startMembers({ operation, nowMs }: Work, tx: Tx, members: MemberRow[]): Promise<boolean> {
  const waiting = new Map(members.filter(({ state }) => state === 'STATE_CREATING').map((vm) => [vm.id, vm]))
  const children = await lockParkedOperations(tx, [...waiting.keys()])
  if (children.length < waiting.size) return false
  for (const child of children) {
    const { id, booted_ssh_destination, firewall_applied } = waiting.get(child.resource_id)!
    await startVm(tx, {
      id,
      isNew: true,
      sshDestination: booted_ssh_destination,
      firewallGeneration: firewall_applied,
      actor: operation.actor,
      requestId: operation.request_id,
      operationId: child.id,
    })
    if (child.scratch.hasNewDisks === true)
      await finishNewDisks(tx, (await findVm(tx, operation.project_id, id))!, child)
  }
  const endings = children.map(({ id, step_log }) => ({
    ...({ id, token: null, state: 'SUCCEEDED', result: vmRecordAsResult } as const),
    stepLog: logStep({ step_log }, 'finish', 'done', nowMs).step_log,
  }))
  await endOperations(tx, endings)
  return true
}

/** Deletes the members that the operation has added, and waits until they are removed. */
export async function removeNewMembers(work: Work): Promise<void> {
  const { database } = work.services
  const { id, project_id, resource_id } = work.operation
  const numbers = work.scratch.numbers as number[]
  const isNew = ({ number }: MemberRow) => numbers.includes(number)
  await database.transaction(async (tx) => {
    const group = await lockGroup(tx, project_id, resource_id)
    for (const member of group?.members.filter(isNew) ?? []) {
      const vm = await findVm(tx, project_id, member.id)
      if (vm) await admitVmDelete(tx, requesterOf(work), vm, { isByGroup: true })
    }
    await requeueBeforeRemoval(tx, id)
  })
  for (const endMs = Date.now() + removalMs; ; ) {
    const group = await findGroup(database, project_id, resource_id)
    if (!group?.members.some(isNew)) return
    if (Date.now() > endMs)
      throw new EngineError('unavailable', 'members of the group are still being removed')
    await delay(removalPauseMs, undefined, { signal: work.signal })
  }
}
