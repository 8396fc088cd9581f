import { isDeepStrictEqual } from 'node:util'
import { gpuQuota, standardOsDiskGib, type VmState, vmStateTable, vmType } from '@slipway/contract'
import { compileFor } from '@slipway/server/operations/firewall/apply.ts'
import { findAnyVm } from '@slipway/server/store/compute/vms.ts'
import { expect } from 'vitest'
import type { TestService } from './service.ts'
import { wrongVmRecords } from './vm-records.ts'

const settled: VmState[] = ['STATE_RUNNING', 'STATE_SHUTOFF', 'STATE_CRASHED', 'STATE_UNREACHABLE']

interface Row {
  [column: string]: never
}

/**
 * Checks the invariants that hold whenever no operation is in progress: claims, quotas, meters, attachments
 * and firewalls match the records, and the engine has exactly the recorded resources.
 */
export async function checkInvariants(service: Pick<TestService, 'sql' | 'database'>): Promise<void> {
  expect(await brokenInvariants(service)).toEqual([])
}

/** Returns the list of broken invariants. */
export async function brokenInvariants(service: Pick<TestService, 'sql' | 'database'>): Promise<string[]> {
  const { sql } = service
  const problems: string[] = []
  const check = (isTrue: boolean, problem: string) => {
    if (!isTrue) problems.push(problem)
  }
  const running = await sql<{ id: string; kind: string }>(
    `SELECT coalesce(o.id, q.operation_id) AS id, coalesce(o.kind, 'only in the queue') AS kind
     FROM (SELECT * FROM operations WHERE state = 'IN_PROGRESS') o FULL JOIN operation_queue q ON q.operation_id = o.id`,
  )
  check(running.length === 0, `unfinished: ${running.map(({ kind }) => kind).join(', ')}`)

  const vms = await sql<{
    id: string
    state: VmState
    type: string
    project_id: string
    os_disk_id: string
    os_disk_gib: number
    host_id: string | null
    deleted_at: Date | null
    os_disk_lost_at: Date | null
    billing_paused_at: Date | null
  }>('SELECT * FROM vms')
  const engineVms = new Map(
    (
      await sql<{ id: string; power: string; disks: string[]; firewall: unknown }>(
        `SELECT id, power, firewall, ARRAY(SELECT d ->> 'id' FROM jsonb_array_elements(spec -> 'disks') d ORDER BY 1) AS disks
       FROM simulated_vms WHERE NOT is_removed`,
      )
    ).map((vm) => [vm.id, vm]),
  )
  const claims = new Map(
    (
      await sql<{ vm_id: string; count: number }>(
        `SELECT vm_id, count(*)::int AS count FROM gpus WHERE vm_id IS NOT NULL GROUP BY vm_id`,
      )
    ).map(({ vm_id, count }) => [vm_id, count]),
  )
  const meters = new Set(
    (
      await sql<{ resource_id: string }>(
        `SELECT resource_id FROM usage_intervals WHERE upper_inf(period) AND resource_type NOT IN ('reservation', 'address')`,
      )
    ).map(({ resource_id }) => resource_id),
  )

  for (const vm of vms.filter(({ deleted_at }) => !deleted_at)) {
    const { holdsGpus, isBilled } = vmStateTable[vm.state]
    const hasOsDisk = vm.os_disk_lost_at === null
    // Objects on a forgotten host do not count.
    const engineVm = hasOsDisk ? engineVms.get(vm.id) : undefined
    check(settled.includes(vm.state), `${vm.id} is in the transitional state ${vm.state}`)
    check(
      // A forgotten host was removed together with its GPUs.
      (claims.get(vm.id) ?? 0) === (holdsGpus && vm.host_id ? vmType(vm.type)!.gpuCount : 0),
      `${vm.id} (${vm.state}) holds ${claims.get(vm.id) ?? 0} GPUs`,
    )
    check(
      meters.has(vm.id) === (isBilled && hasOsDisk && vm.billing_paused_at === null),
      `${vm.id} (${vm.state}) is ${meters.has(vm.id) ? '' : 'not '}metered`,
    )
    if (hasOsDisk) check(engineVm !== undefined, `${vm.id} (${vm.state}) is not at the engine`)
    if (vm.state === 'STATE_RUNNING')
      check(
        engineVm?.power === 'on',
        `${vm.id} is running, but its power at the engine is ${engineVm?.power}`,
      )
    const attached = await sql<{ id: string }>(
      'SELECT disk_id::text AS id FROM disk_attachments WHERE vm_id = $1 ORDER BY 1',
      [vm.id],
    )
    const attachedIds = attached.map(({ id }) => id)
    check(
      !engineVm || isDeepStrictEqual(engineVm.disks, attachedIds),
      `${vm.id} has the disks ${attachedIds}, but at the engine ${engineVm?.disks}`,
    )
    if (engineVm && vm.state !== 'STATE_UNREACHABLE') {
      const compiled = await compileFor(service.database, (await findAnyVm(service.database, vm.id))!)
      check(
        isDeepStrictEqual(engineVm.firewall, JSON.parse(JSON.stringify(compiled))),
        `${vm.id} has the firewall ${JSON.stringify(compiled)}, but at the engine ${JSON.stringify(engineVm.firewall)}`,
      )
    }
  }
  for (const id of engineVms.keys())
    check(
      vms.some((vm) => vm.id === id),
      `the engine has the VM ${id}, which has no record`,
    )
  for (const id of claims.keys())
    check(
      vms.some((vm) => vm.id === id),
      `GPUs are claimed by ${id}, which does not exist`,
    )

  await checkAddresses(sql, check)

  const overlaps = await sql<{ location: string; one: string; other: string }>(
    `SELECT DISTINCT a.location, a.cidr::text AS one, b.cidr::text AS other
     FROM subnets a JOIN subnets b ON b.location = a.location AND b.cidr && a.cidr AND b.network_id > a.network_id
     WHERE EXISTS (SELECT FROM hosts h WHERE h.location = a.location AND h.capabilities ->> 'network' = 'bridge')
       AND EXISTS (SELECT FROM vms WHERE subnet_id = a.id) AND EXISTS (SELECT FROM vms WHERE subnet_id = b.id)`,
  )
  for (const { location, one, other } of overlaps)
    check(false, `the bridges of ${location} carry ${one} and ${other} of different networks`)

  const disks = await sql<{ id: string; state: string; size_gib: string; project_id: string; type: string }>(
    'SELECT * FROM disks',
  )
  const engineDisks = new Map(
    (
      await sql<{ id: string; size_gib: string }>(
        'SELECT id, size_gib FROM simulated_disks WHERE NOT is_removed',
      )
    ).map((disk) => [disk.id, disk]),
  )
  for (const disk of disks) {
    check(disk.state === 'available', `disk ${disk.id} is in the transitional state ${disk.state}`)
    check(meters.has(disk.id), `disk ${disk.id} is not metered`)
    check(
      Number(engineDisks.get(disk.id)?.size_gib ?? 0) >= Number(disk.size_gib),
      `disk ${disk.id} has ${disk.size_gib} GiB, but at the engine ${engineDisks.get(disk.id)?.size_gib ?? 'none'}`,
    )
  }
  for (const id of engineDisks.keys())
    check(
      disks.some((disk) => disk.id === id),
      `the engine has the disk ${id}, which has no record`,
    )
  const captures = await sql<{ id: string; state: string; stored_bytes: string }>('SELECT * FROM captures')
  const engineCaptures = new Set(
    (await sql<{ id: string }>('SELECT id FROM simulated_captures WHERE NOT is_removed')).map(({ id }) => id),
  )
  for (const { id, state } of captures) {
    check(state === 'available', `the copy ${id} is in the transitional state ${state}`)
    check(meters.has(id), `the copy ${id} is not metered`)
    check(engineCaptures.has(id), `the copy ${id} is not at the engine`)
  }
  for (const id of engineCaptures)
    check(
      captures.some((capture) => capture.id === id),
      `the engine has the copy ${id}, which has no record`,
    )
  for (const id of meters)
    check(
      vms.some((vm) => vm.id === id || vm.os_disk_id === id) ||
        [...disks, ...captures].some((resource) => resource.id === id),
      `${id} is metered, but does not exist`,
    )

  const rules = await sql<{ id: string; state: string; project_id: string }>(
    'SELECT id, state, project_id FROM firewall_rules',
  )
  for (const rule of rules)
    check(rule.state === 'active', `rule ${rule.id} is in the transitional state ${rule.state}`)

  const used = new Map<string, number>()
  const use = (project: string, name: string, amount: number) =>
    used.set(`${project} ${name}`, (used.get(`${project} ${name}`) ?? 0) + amount)
  for (const vm of vms.filter(({ deleted_at }) => !deleted_at)) {
    use(vm.project_id, 'vms', 1)
    use(vm.project_id, 'disk_gib', vm.os_disk_gib - standardOsDiskGib)
    if (vmStateTable[vm.state].holdsGpus && vm.host_id)
      use(vm.project_id, gpuQuota(vmType(vm.type)!.family), vmType(vm.type)!.gpuCount)
  }
  for (const disk of disks)
    if (disk.type === 'shared-volume') use(disk.project_id, 'shared_volume_tib', Number(disk.size_gib) / 1024)
    else use(disk.project_id, 'disk_gib', Number(disk.size_gib))
  for (const rule of rules) use(rule.project_id, 'firewall_rules', 1)
  for (const quota of await sql<{ project_id: string; name: string; used: string }>(
    'SELECT project_id, name, used FROM quotas',
  ))
    check(
      Number(quota.used) === (used.get(`${quota.project_id} ${quota.name}`) ?? 0),
      `quota ${quota.name} has the usage ${quota.used}, but the resources use ${used.get(`${quota.project_id} ${quota.name}`) ?? 0}`,
    )

  const miscounted = await sql<{ name: string }>(
    `SELECT o.name FROM organization_quotas o
     WHERE o.used <> (SELECT coalesce(sum(q.used), 0) FROM quotas q JOIN projects p ON p.id = q.project_id
                      WHERE p.organization_id = o.organization_id AND q.name = o.name)`,
  )
  for (const { name } of miscounted)
    problems.push(`quota ${name} of the organization does not equal the sum of its projects`)

  const wrongRates = await sql<{ project_id: string }>(
    `SELECT s.project_id FROM project_spending s
     LEFT JOIN (SELECT project_id, sum(metered_rate(product_name, quantity, period, slipway_now())) AS rate
                FROM usage_intervals GROUP BY project_id) i USING (project_id)
     WHERE s.usd_per_hour <> coalesce(i.rate, 0)`,
  )
  for (const { project_id } of wrongRates)
    problems.push(`the hourly cost of project ${project_id} does not equal the sum of its meters`)

  const wrongSums = await sql<{ resource_id: string }>(
    `SELECT resource_id FROM (
       SELECT resource_id, earlier_usd_ms,
              sum(metered_cost(product_name, quantity, period)) OVER (PARTITION BY resource_id ORDER BY id
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS earlier
       FROM usage_intervals) i
     WHERE earlier_usd_ms <> coalesce(earlier, 0)`,
  )
  for (const { resource_id } of wrongSums)
    problems.push(`a meter of ${resource_id} has the wrong cost of the earlier meters`)

  const counts = await sql<Row & { name: string; free_gpus: number; free: number }>(
    `SELECT h.name, h.free_gpus, (SELECT count(*)::int FROM gpus g WHERE g.host_id = h.id AND g.state = 'free') AS free FROM hosts h`,
  )
  for (const host of counts)
    check(
      host.free_gpus === host.free,
      `${host.name} counts ${host.free_gpus} free GPUs, but has ${host.free}`,
    )
  const holds = await sql<{ id: string; state: string; gpus: number; held: number }>(
    `SELECT r.id, r.state, r.gpus, (SELECT count(*)::int FROM gpus g WHERE g.held_for = r.id) AS held
     FROM capacity_requests r`,
  )
  for (const { id, state, gpus, held } of holds) {
    check(
      state !== 'held' || held === gpus,
      `the request ${id} is in the state held, but has ${held} of ${gpus} GPUs`,
    )
    check(
      state === 'held' || state === 'waiting' || held === 0,
      `${held} GPUs are held for ${id}, which has ended`,
    )
  }
  const strays = await sql<{ id: string }>(
    `SELECT g.id FROM gpus g WHERE g.held_kind = 'request'
       AND NOT EXISTS (SELECT FROM capacity_requests r WHERE r.id = g.held_for)`,
  )
  for (const { id } of strays) problems.push(`the GPU ${id} is held for a request that does not exist`)
  const reservations = await sql<{
    id: string
    quantity: number
    owned: number
    is_over: boolean
    vms: number
  }>(
    `SELECT r.id, r.quantity, (SELECT count(*)::int FROM gpus g WHERE g.held_for = r.id) AS owned,
            r.ended_at IS NOT NULL AS is_over, (SELECT count(*)::int FROM vms v WHERE v.reservation_id = r.id) AS vms
     FROM reservations r`,
  )
  for (const { id, quantity, owned, is_over, vms: inside } of reservations) {
    check(owned <= quantity, `the reservation ${id} has ${owned} GPUs of ${quantity}`)
    check(
      !is_over || owned + inside === 0,
      `the reservation ${id} has ended, but has ${owned} GPUs and ${inside} VMs`,
    )
  }
  const misplaced = await sql<{ id: string }>(
    `SELECT v.id FROM vms v JOIN gpus g ON g.vm_id = v.id WHERE g.held_for IS DISTINCT FROM v.reservation_id`,
  )
  for (const { id } of misplaced) problems.push(`${id} and its GPUs do not use the same reservation`)
  const queues = await sql<{ location: string; family: string; waiting: number; open: number }>(
    `SELECT l.location, l.family, l.waiting, (SELECT count(*)::int FROM capacity_places p
       WHERE p.location = l.location AND p.family = l.family AND p.is_open) AS open FROM capacity_lanes l`,
  )
  for (const { location, family, waiting, open } of queues)
    check(
      waiting === open,
      `the queue for ${family} in ${location} counts ${waiting} requests, but has ${open}`,
    )
  const misqueued = await sql<{ id: string; state: string }>(
    `SELECT r.id, r.state FROM capacity_requests r JOIN capacity_places p ON p.request_id = r.id
     WHERE p.is_open AND r.state <> 'waiting'`,
  )
  for (const { id, state } of misqueued)
    problems.push(`the capacity request ${id} is ${state}, but still in a queue`)
  return [...problems, ...(await wrongVmRecords(service))]
}

/** Runs the reconcilers of host reports and firewalls once, so that GPUs return to stock after their reset. */
export async function settle(service: TestService): Promise<void> {
  await service.server.reconciler.reports()
  await service.server.reconciler.firewalls()
}

/**
 * Checks that no address is on two VMs, in the database or at the engine, and that a reserved address is
 * metered exactly while no metered VM has it.
 */
async function checkAddresses(
  sql: TestService['sql'],
  check: (isTrue: boolean, problem: string) => void,
): Promise<void> {
  const mismatched = await sql<{ address: string }>(
    `SELECT host(coalesce(v.public_address, a.address)) AS address
     FROM (SELECT * FROM vms WHERE public_address IS NOT NULL) v
     FULL JOIN (SELECT * FROM public_addresses WHERE vm_id IS NOT NULL) a
       ON a.address = v.public_address AND a.vm_id = v.id AND a.id = v.public_address_id
          AND (a.name IS NOT NULL) = v.is_address_static
     WHERE v.id IS NULL OR a.id IS NULL`,
  )
  for (const { address } of mismatched) check(false, `the records of ${address} and its VM do not match`)
  const promised = await sql<{ address: string }>(
    'SELECT host(address) AS address FROM public_addresses WHERE next_vm_id IS NOT NULL',
  )
  for (const { address } of promised)
    check(false, `${address} is promised to a VM, but no operation is in progress`)
  const differing = await sql<{ id: string; recorded: string; shown: string }>(
    `SELECT v.id, coalesce(host(v.public_address), '') AS recorded, e.spec #>> '{network,publicAddress}' AS shown
     FROM vms v JOIN simulated_vms e ON e.id = v.id AND NOT e.is_removed
     WHERE v.os_disk_lost_at IS NULL AND v.state IN ('STATE_RUNNING', 'STATE_SHUTOFF', 'STATE_CRASHED')
       AND coalesce(host(v.public_address), '') <> e.spec #>> '{network,publicAddress}'`,
  )
  for (const { id, recorded, shown } of differing)
    check(false, `${id} has the address ${recorded || 'none'}, but at the engine ${shown || 'none'}`)
  const meters = await sql<{ address: string; is_metered: boolean; is_due: boolean }>(
    `SELECT host(a.address) AS address, v.metered_since IS NULL AS is_due,
            EXISTS (SELECT FROM usage_intervals i WHERE i.resource_id = a.id AND upper_inf(i.period)) AS is_metered
     FROM public_addresses a LEFT JOIN vms v ON v.id = a.vm_id WHERE a.name IS NOT NULL`,
  )
  for (const { address, is_metered, is_due } of meters)
    check(is_metered === is_due, `${address} is ${is_metered ? '' : 'not '}metered`)
}
