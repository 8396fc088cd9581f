import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { startService } from '@slipway/testing/service.ts'
import { expect } from 'vitest'
import { groupBody } from './small-fleet.ts'

/** Eight hosts with eight GPUs each in every location; a whole-host VM takes one of them. */
export const hostCount = 8

/** A service for tests of instance groups. */
export async function startGroupFleet() {
  const service = await startService((config) => {
    for (const location of config.locations)
      if (location.engine === 'simulated')
        location.simulated.hosts = [{ model: 'A100 40GB PCIe', count: hostCount, gpus: 8 }]
  })
  await settle(service)

  const create = (body: object) => service.call('instanceGroupCreate', { body })
  const get = (instance_group_id: string) => service.ok('instanceGroupGet', { params: { instance_group_id } })

  async function beginGroup(body: object) {
    const { operation } = await service.ok('instanceGroupCreate', { body })
    return { id: operation.metadata.id, operation_id: operation.operation_id }
  }

  async function newGroup(desired_count: number, changes: object = {}, vm: Record<string, unknown> = {}) {
    const { id, operation_id } = await beginGroup(groupBody(desired_count, changes, vm))
    expect(await service.ended(operation_id)).toMatchObject({ state: 'SUCCEEDED' })
    return get(id)
  }

  async function removeGroup(instance_group_id: string, query = {}) {
    const params = { instance_group_id }
    const { operation } = await service.ok('instanceGroupDelete', { params, query })
    expect(await service.advanceUntilEnded(operation.operation_id)).toMatchObject({
      state: 'SUCCEEDED',
      result: null,
    })
  }

  async function changeGroup(instance_group_id: string, body: object) {
    const { operation } = await service.ok('instanceGroupUpdate', { params: { instance_group_id }, body })
    const ended = await service.ended(operation.operation_id)
    expect(ended).toMatchObject({ state: 'SUCCEEDED' })
    return get(instance_group_id)
  }

  /** Counts what a refused request must not change. */
  const store = async () =>
    (
      await service.sql(
        `SELECT (SELECT count(*) FROM vms) AS vms, (SELECT count(*) FROM instance_groups) AS groups,
                (SELECT count(*) FROM operations) AS operations, (SELECT sum(used) FROM quotas) AS used,
                (SELECT count(*) FROM gpus WHERE state <> 'free') AS claimed,
                (SELECT count(*) FROM events_written) AS events`,
      )
    )[0]

  /** Makes paused operations due now. */
  async function hasten() {
    await service.sql('UPDATE operation_queue SET run_at = slipway_now() WHERE lease_token IS NULL')
    service.server.services.signals.send('operations')
  }

  /** Lets these members respond now, and the others in an hour. */
  async function respond(names: string[]) {
    await service.sql(
      `UPDATE simulated_vms s SET ready_at = CASE WHEN v.name = ANY ($1) THEN slipway_now() - interval '1 second'
                                                ELSE slipway_now() + interval '1 hour' END
       FROM vms v WHERE v.id = s.id`,
      [names],
    )
    await hasten()
  }

  /**
   * Waits for the end of an operation while the clock is frozen. Makes paused operations due, because they
   * would otherwise never continue.
   */
  const endedNow = (operation_id: string) =>
    eventually(async () => {
      await hasten()
      const operation = await service.ok('operationGet', { params: { operation_id } })
      return operation.state !== 'IN_PROGRESS' && operation
    })

  /** Creates a group whose members do not respond yet, and freezes the clock. */
  async function slowGroup(count: number) {
    await service.clock.freeze()
    service.simulator().setBootMs([3_600_000, 3_600_000])
    const body = groupBody(count)
    const group = await beginGroup(body)
    await eventually(async () => {
      const rows = await service.sql('SELECT FROM simulated_vms WHERE NOT is_removed')
      return rows.length === count
    })
    const names = Array.from({ length: count }, (_, index) => `${body.name}-${index + 1}`)
    return { ...group, names }
  }

  /** Deletes everything that a test has left behind, and checks the invariants. */
  async function clear() {
    await service.clock.thaw()
    service.simulator().setBootMs([0, 0])
    await service.simulator().clearFaults()
    for (const { id, deletion_protection } of (await service.ok('instanceGroupList')).items) {
      if (deletion_protection) await changeGroup(id, { deletion_protection: false })
      await removeGroup(id)
    }
    for (const { id } of (await service.ok('vmList')).items)
      await service.ok('vmDelete', { params: { vm_id: id } })
    await eventually(async () => (await service.ok('vmList')).items.length === 0)
    await settle(service)
    await checkInvariants(service)
  }

  return {
    service,
    ...{ create, get, beginGroup, newGroup, removeGroup, changeGroup, store, hasten },
    ...{ respond, endedNow, slowGroup, clear },
  }
}

export type GroupFleet = Awaited<ReturnType<typeof startGroupFleet>>
