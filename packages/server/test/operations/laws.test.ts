import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { resourcesOf, vmBody } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Failure } from '../../src/domain/failure.ts'
import { admitGroupReplace } from '../../src/operations/group/replace.ts'
import { definitions } from '../../src/operations/index.ts'
import type { Tx } from '../../src/postgres/database.ts'
import type { Definition, Step, Work } from '../../src/runner/operation.ts'
import { Runner } from '../../src/runner/runner.ts'
import type { Services } from '../../src/services.ts'
import { findGroup } from '../../src/store/compute/instance-groups.ts'
import { system } from '../../src/store/events/events.ts'

let service: TestService
let networkId: string

beforeAll(async () => {
  // The service has no runner: each test starts the workers that it needs.
  service = await startService((config) => {
    config.server.role = 'api'
    config.operations.leaseMs = 10_000
  })
  await settle(service)
  networkId = (await service.ok('networkList')).items[0]!.id
})
afterAll(async () => {
  await service.close()
})

function services(renewMs: number, concurrency = 32): Services {
  const own = service.server.services
  const operations = { ...own.config.operations, renewMs, concurrency }
  return { ...own, config: { ...own.config, operations }, log: { info() {}, warn() {}, error() {} } }
}

/** Runs operations in progress to their end with these definitions. */
async function withRunner<T>(changed: Definition[], work: () => Promise<T>, renewMs = 1_000): Promise<T> {
  const runner = new Runner(services(renewMs), changed)
  runner.start()
  try {
    return await work()
  } finally {
    await runner.stop()
  }
}

const name = (() => {
  let count = 0
  return (prefix: string) => `${prefix}-${++count}`
})()

async function run(begun: { operation: { operation_id: string; metadata: { id: string } } }) {
  const operation = await withRunner(definitions, () => service.ended(begun.operation.operation_id))
  expect(operation.state).toBe('SUCCEEDED')
  return begun.operation.metadata.id
}
const newVm = async () => run(await service.ok('vmCreate', { body: vmBody() }))
const newDisk = async () =>
  run(await service.ok('diskCreate', { body: { name: name('disk'), size: '10GiB', location: 'us-east1-a' } }))
const newSnapshot = async () =>
  run(await service.ok('snapshotCreate', { body: { name: name('snapshot'), disk_id: await newDisk() } }))
const ruleBody = () => ({
  name: name('rule'),
  vpc_network_id: networkId,
  action: 'allow',
  direction: 'ingress',
  protocols: ['tcp'],
  sources: [{ cidr: '203.0.113.0/24' }],
  destinations: [{ resource_id: networkId }],
  destination_ports: ['8888'],
})
const newRule = async () => run(await service.ok('firewallRuleCreate', { body: ruleBody() }))
const groupBody = () => {
  const { name: _, ...vm } = vmBody({ new_disks: [{ size: '10GiB' }] })
  return { name: name('group'), desired_count: 2, vm }
}
const newGroup = async () => run(await service.ok('instanceGroupCreate', { body: groupBody() }))
const changeGroup = (instance_group_id: string, body: unknown) =>
  service.ok('instanceGroupUpdate', { params: { instance_group_id }, body })
const act = (vm_id: string, body: unknown) => service.ok('vmUpdate', { params: { vm_id }, body })
const attach = (vm_id: string, disk_id: string) =>
  service.ok('vmAttachDisks', {
    params: { vm_id },
    body: { attach_disks: [{ disk_id, attachment_type: 'data', mode: 'read-write' }] },
  })

/**
 * How each kind of operation is started: the resources that it needs, then the request. The test of a kind without an
 * entry fails.
 */
const scenarios: Record<
  string,
  () => Promise<() => Promise<{ operation: { operation_id: string; metadata: { id: string } } }>>
> = {
  'vm-create': async () => {
    const disk_id = await newDisk()
    return () => service.ok('vmCreate', { body: vmBody({ disks: [{ disk_id }] }) })
  },
  'vm-start': async () => {
    const vm = await newVm()
    await run(await act(vm, { action: 'STOP' }))
    return () => act(vm, { action: 'START' })
  },
  'vm-stop': async () => {
    const vm = await newVm()
    return () => act(vm, { action: 'STOP' })
  },
  'vm-reset': async () => {
    const vm = await newVm()
    return () => act(vm, { action: 'RESET' })
  },
  'vm-replace': async () => {
    const vm = await newVm()
    return () => act(vm, { action: 'REPLACE' })
  },
  'vm-update': async () => {
    const vm = await newVm()
    return () => act(vm, { ttl_seconds: 3600 })
  },
  'vm-readdress': async () => {
    const [{ id: address_id }, vm_id] = [await resourcesOf(service).spareAddress(), await newVm()]
    return () => service.ok('addressAssign', { params: { address_id }, body: { vm_id } })
  },
  'vm-attach-disks': async () => {
    const [vm, disk] = [await newVm(), await newDisk()]
    return () => attach(vm, disk)
  },
  'vm-detach-disks': async () => {
    const [vm, disk] = [await newVm(), await newDisk()]
    await run(await attach(vm, disk))
    return () => service.ok('vmDetachDisks', { params: { vm_id: vm }, body: { detach_disks: [disk] } })
  },
  'vm-delete': async () => {
    const vm = await newVm()
    return () => service.ok('vmDelete', { params: { vm_id: vm } })
  },
  'disk-create': async () => () =>
    service.ok('diskCreate', { body: { name: name('disk'), size: '10GiB', location: 'us-east1-a' } }),
  'disk-resize': async () => {
    const disk = await newDisk()
    return () => service.ok('diskUpdate', { params: { disk_id: disk }, body: { size: '20GiB' } })
  },
  'disk-delete': async () => {
    const disk = await newDisk()
    return () => service.ok('diskDelete', { params: { disk_id: disk } })
  },
  'instance-group-create': async () => () => service.ok('instanceGroupCreate', { body: groupBody() }),
  'instance-group-grow': async () => {
    const group = await newGroup()
    return () => changeGroup(group, { desired_count: 3 })
  },
  'instance-group-shrink': async () => {
    const group = await newGroup()
    return () => changeGroup(group, { desired_count: 1 })
  },
  'instance-group-start': async () => {
    const instance_group_id = await newGroup()
    await run(await service.ok('instanceGroupStop', { params: { instance_group_id } }))
    return () => service.ok('instanceGroupStart', { params: { instance_group_id } })
  },
  'instance-group-stop': async () => {
    const instance_group_id = await newGroup()
    return () => service.ok('instanceGroupStop', { params: { instance_group_id } })
  },
  'instance-group-replace': async () => {
    const group = (await findGroup(service.database, service.credentials.project_id, await newGroup()))!
    const by = { ...system, projectId: group.project_id }
    return async () => {
      const { id } = await service.database.transaction((tx) =>
        admitGroupReplace(tx, by, group, group.members.slice(0, 1)),
      )
      return { operation: { operation_id: id, metadata: { id: group.id } } }
    }
  },
  'instance-group-delete': async () => {
    const instance_group_id = await newGroup()
    return () =>
      service.ok('instanceGroupDelete', { params: { instance_group_id }, query: { delete_disks: true } })
  },
  'disk-restore': async () => {
    const snapshot_id = await newSnapshot()
    return () => service.ok('diskCreate', { body: { name: name('disk'), snapshot_id } })
  },
  'snapshot-create': async () => {
    const disk_id = await newDisk()
    return () => service.ok('snapshotCreate', { body: { name: name('snapshot'), disk_id } })
  },
  'snapshot-delete': async () => {
    const snapshot_id = await newSnapshot()
    return () => service.ok('snapshotDelete', { params: { snapshot_id } })
  },
  'custom-image-create': async () => {
    const vm_id = await newVm()
    const body = { name: name('image'), vm_id, allow_crash_consistent: true }
    return () => service.ok('customImageCreate', { body })
  },
  'custom-image-delete': async () => {
    const snapshot_id = await newSnapshot()
    const custom_image_id = await run(
      await service.ok('customImageCreate', { body: { name: name('image'), snapshot_id } }),
    )
    return () => service.ok('customImageDelete', { params: { custom_image_id } })
  },
  'firewall-rule-create': async () => {
    await newVm()
    return () => service.ok('firewallRuleCreate', { body: ruleBody() })
  },
  'firewall-rule-update': async () => {
    const [rule] = [await newRule(), await newVm()]
    return () =>
      service.ok('firewallRuleUpdate', { params: { rule_id: rule }, body: { destination_ports: ['9999'] } })
  },
  'firewall-rule-delete': async () => {
    const [rule] = [await newRule(), await newVm()]
    return () => service.ok('firewallRuleDelete', { params: { rule_id: rule } })
  },
}

/** Counts everything that a client can observe. A creation that fails must not change the counts. */
const countRecords = async () => {
  const [row] = await service.sql(
    `SELECT (SELECT count(*) FROM vms) AS vms, (SELECT count(*) FROM disks) AS disks, (SELECT count(*) FROM captures) AS captures,
            (SELECT count(*) FROM simulated_captures WHERE NOT is_removed) AS engine_captures,
            (SELECT count(*) FROM firewall_rules) AS rules, (SELECT count(*) FROM instance_groups) AS groups, (SELECT count(*) FROM disk_attachments) AS attachments,
            (SELECT count(*) FROM simulated_vms WHERE NOT is_removed) AS engine_vms,
            (SELECT count(*) FROM simulated_disks WHERE NOT is_removed) AS engine_disks,
            (SELECT count(*) FROM usage_intervals WHERE upper_inf(period)) AS meters,
            (SELECT count(*) FROM gpus WHERE state <> 'free') AS busy_gpus`,
  )
  return row
}

const changeStep = (definition: Definition, index: number, change: (step: Step) => Step): Definition[] =>
  changeSteps((step, of, at) => (of.kind === definition.kind && at === index ? change(step) : step))

function changeSteps(
  change: (step: Step, of: Definition, at: number) => Step,
  from = definitions,
): Definition[] {
  return from.map((each) => ({ ...each, steps: each.steps.map((step, at) => change(step, each, at)) }))
}

/** Runs `hook` before or after the step's own work, inside its transaction if it has one. */
const around = (step: Step, when: 'before' | 'after', hook: () => Promise<void>): Step => {
  const wrap =
    <A extends unknown[], R>(work: (...args: A) => Promise<R>) =>
    async (...args: A) => {
      if (when === 'before') await hook()
      const result = await work(...args)
      if (when === 'after') await hook()
      return result
    }
  const { tx, call } = step
  return {
    ...step,
    ...(tx && { tx: wrap(tx) }),
    ...(call && { call: wrap(call) }),
  }
}

const isTransaction = (step: Step) => step.tx !== undefined

/** Returns a function that does the work, but rolls it back the first time. */
function rollBackOnce<W, R>(write: (work: W, tx: Tx) => Promise<R>) {
  let isFirst = true
  return async (work: W, tx: Tx): Promise<R> => {
    const outcome = await write(work, tx)
    if (!isFirst) return outcome
    isFirst = false
    throw new Error('rolled back once')
  }
}

/** Changes all steps: every engine call is made twice, and every transaction is rolled back once. */
const runTwice = (): Definition[] =>
  changeSteps(({ call, tx, ...step }) => ({
    ...step,
    ...(call && { call: async (work: Work) => (await call(work)) && call(work) }),
    ...(tx && { tx: rollBackOnce(tx) }),
  }))

/** Changes all steps: every undo runs twice, and adds the name of its step to `undoneSteps`. */
const undoTwice = (from: Definition[], undoneSteps: Set<string>): Definition[] =>
  changeSteps(
    ({ undoCall, undoTx, ...step }) => ({
      ...step,
      ...(undoCall && {
        undoCall: async (work: Work) => {
          undoneSteps.add(step.name)
          await undoCall(work)
          await undoCall(work)
        },
      }),
      ...(undoTx && {
        undoTx: rollBackOnce(async (work: Work, tx: Tx) => {
          undoneSteps.add(step.name)
          await undoTx(work, tx)
        }),
      }),
    }),
    from,
  )

describe.each(definitions.map((definition) => ({ kind: definition.kind, definition })))(
  '$kind',
  ({ kind, definition }) => {
    const { resourceType } = definition
    const prepare = () => {
      const scenario = scenarios[kind]
      if (!scenario) throw new Error(`write a scenario for ${kind}`)
      return scenario()
    }

    test(`${kind} may run every step twice`, async () => {
      const request = await prepare()
      const { operation } = await request()
      const ended = await withRunner(runTwice(), () => service.advanceUntilEnded(operation.operation_id))
      expect(ended.state).toBe('SUCCEEDED')
      await settle(service)
      await checkInvariants(service)
    })

    afterAll(() =>
      withRunner(definitions, async () => {
        const { items: groups } = await service.ok('instanceGroupList')
        for (const { id } of groups)
          await service.ok('instanceGroupDelete', { params: { instance_group_id: id } })
        await eventually(async () => (await service.ok('instanceGroupList')).items.length === 0)
        const { items: vms } = await service.ok('vmList')
        for (const { id } of vms) await service.ok('vmDelete', { params: { vm_id: id } })
        await eventually(async () => (await service.ok('vmList')).items.length === 0)
        const { items: snapshots } = await service.ok('snapshotList')
        for (const { id } of snapshots) await service.ok('snapshotDelete', { params: { snapshot_id: id } })
        const { items: images } = await service.ok('customImageList')
        for (const { id } of images)
          await service.ok('customImageDelete', { params: { custom_image_id: id } })
        await eventually(
          async () =>
            (await service.ok('snapshotList')).items.length === 0 &&
            (await service.ok('customImageList')).items.length === 0,
        )
        const { items: disks } = await service.ok('diskList')
        for (const { id } of disks) await service.ok('diskDelete', { params: { disk_id: id } })
        await eventually(async () => (await service.ok('diskList')).items.length === 0)
        await settle(service)
      }),
    )

    const places = definition.steps.flatMap((step, index) =>
      // The work of the request itself is not part of the runner, so it cannot fail here.
      (isTransaction(step) || step.call ? (['before', 'after'] as const) : []).map((when) => ({
        when,
        index,
        step: step.name,
        isTx: isTransaction(step),
      })),
    )
    // PostgreSQL rolls back a transaction that is open when its process stops, so a worker that stops after the work
    // of such a step has done nothing.
    const stops = places.filter(({ when, isTx }) => !(isTx && when === 'after'))

    const failureTitle = `${kind} leaves nothing behind when it fails $when $step and every undo runs twice`
    test.each(places)(failureTitle, async ({ when, index }) => {
      const request = await prepare()
      await settle(service)
      const before = await countRecords()
      const { operation } = await request()
      // If the operation is retried instead of undone, it succeeds after any thrown error.
      const thrown = [new Failure('engine_error', 'on purpose'), new Error('once more')]
      const failing = changeStep(definition, index, (step) =>
        around(step, when, async () => {
          const error = definition.isRetriedNotUndone ? thrown.shift() : thrown[0]
          if (error) throw error
        }),
      )
      const undoneSteps = new Set<string>()
      const ended = await withRunner(undoTwice(failing, undoneSteps), () =>
        service.advanceUntilEnded(operation.operation_id),
      )
      expect(ended.state).toBe(definition.isRetriedNotUndone ? 'SUCCEEDED' : 'FAILED')
      if (!definition.isRetriedNotUndone)
        expect(ended.result).toEqual({ code: 'engine_error', message: 'on purpose' })
      const begun = definition.isRetriedNotUndone ? [] : definition.steps.slice(0, index + 1)
      const undoable = begun.filter((step) => step.undoCall || step.undoTx)
      expect([...undoneSteps].sort()).toEqual(undoable.map((step) => step.name).sort())
      await settle(service)
      await checkInvariants(service)
      if (definition.name === 'CREATE') expect(await countRecords()).toEqual(before)
    })

    test.each(stops)(
      `${kind} is taken over by another worker when one stops $when $step, and the late worker changes nothing`,
      async ({ when, index }) => {
        const request = await prepare()
        const { operation } = await request()
        let release = () => {}
        const released = new Promise<void>((resolve) => {
          release = resolve
        })
        let isStopped = false
        const stopping = changeStep(definition, index, (step) =>
          // PostgreSQL rolls back a transaction that is open when its process stops, so the worker stops before it.
          around(step, isTransaction(step) ? 'before' : when, async () => {
            isStopped = true
            if (!isTransaction(step)) return released
            late.stop()
            throw new Error('stopped')
          }),
        )
        // The only slot of this worker is taken, so it does not claim the lost operation again.
        const late = new Runner(services(3_600_000, 1), stopping)
        late.start()
        await eventually(async () => isStopped)
        await service.clock.advance('11 seconds')
        const ended = await withRunner(definitions, () => service.advanceUntilEnded(operation.operation_id))
        expect(ended.state).toBe('SUCCEEDED')
        const row = () =>
          service.sql('SELECT state, result, step, step_log, completed_at FROM operations WHERE id = $1', [
            operation.operation_id,
          ])
        const before = await row()
        release()
        await late.stop()
        expect(await row()).toEqual(before)
        await settle(service)
        await checkInvariants(service)
      },
    )

    // Other kinds are left out: rules have no labels, groups keep their names, images and snapshots have no
    // operation for changes, a resource that is being deleted cannot be updated, and a failed creation leaves
    // nothing.
    const hasWords = !definition.isRetriedNotUndone && ['vm', 'disk'].includes(resourceType)
    const outcomes = definition.name === 'CREATE' ? ['SUCCEEDED'] : ['SUCCEEDED', 'FAILED']
    const title = `${kind} keeps the name and labels that are given during each of its steps when it has %s`
    test.each(hasWords ? outcomes : [])(title, async (outcome) => {
      const request = await prepare()
      const { operation } = await request()
      const { id } = operation.metadata
      const describe = async (labels: Record<string, string>) => {
        const body = { name: name('said'), description: 'for the paper', labels }
        await (resourceType === 'vm'
          ? service.ok('vmUpdate', { params: { vm_id: id }, body })
          : service.ok('diskUpdate', { params: { disk_id: id }, body }))
        return body
      }
      let said = {}
      const last = definition.steps.findLastIndex((step) => isTransaction(step) || step.call)
      const describing = changeSteps((step, of, at) =>
        of.kind !== kind
          ? step
          : around(step, 'before', async () => {
              said = await describe({ step: String(at) })
              if (at === last && outcome === 'FAILED') throw new Failure('engine_error', 'on purpose')
            }),
      )
      const ended = await withRunner(describing, () => service.advanceUntilEnded(operation.operation_id))
      expect(ended.state).toBe(outcome)
      const record =
        resourceType === 'vm'
          ? await service.ok('vmGet', { params: { vm_id: id } })
          : await service.ok('diskGet', { params: { disk_id: id } })
      expect(record).toMatchObject(said)
      await settle(service)
      await checkInvariants(service)
    })
  },
)
