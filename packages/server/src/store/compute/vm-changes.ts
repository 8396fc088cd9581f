import {
  type EventType,
  type GpuFaultPolicy,
  type IdlePolicy,
  type Labels,
  standardOsDiskGib,
  type VmState,
} from '@slipway/contract'
import { uuid } from '../../domain/ids.ts'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'
import { endOfMeter } from '../billing/usage.ts'
import { annotationOf } from './annotations.ts'
import type { VmRow } from './vms.ts'

export interface NewVm {
  id: string
  projectId: string
  name: string
  type: string
  family: string
  gpuCount: number
  location: string
  hostId: string
  /** The name as the client wrote it. */
  image: string
  /** The full name in the catalogue; null for a VM from a custom image. */
  imageName: string | null
  customImageId: string | null
  sshPublicKeys: string[]
  startupScript: string
  startupScriptSha256: string
  shutdownScript: string
  osDiskId: string
  osDiskSize: string
  osDiskGib: number
  interfaceId: string
  subnetId: string
  macAddress: string
  privateAddress: string
  publicAddress: string | null
  publicAddressId: string | null
  isAddressStatic: boolean
  ttlSeconds: number | null
  onExpiry: string
  idlePolicy: IdlePolicy | null
  onGpuFault: GpuFaultPolicy
  labels: Labels
  description: string
  isProtected: boolean
  instanceTemplateId: string | null
  groupId: string | null
  groupNumber: number | null
}

// Inserts VMs whose location, subnet and image are still available, and whose names and addresses are free. The
// transaction fails unless all of them can be inserted. Rows are inserted in the order of their names, so that two
// batches never deadlock. The ids of the subnets are repeated as an array, because without statistics PostgreSQL
// would otherwise read all subnets.
const insert = statement<never, { vms: string; count: number }>(
  'vm_insert',
  `WITH made AS (
   INSERT INTO vms (id, project_id, name, type, family, gpu_count, location, host_id, image, image_source,
     ssh_public_keys, startup_script, startup_script_sha256, shutdown_script, os_disk_id, os_disk_size, os_disk_gib,
     interface_id, network_id, subnet_id, mac_address, private_address, public_address, public_address_id,
     is_address_static, ttl_seconds, on_expiry, labels, description, is_protected, instance_template_id, group_id, group_number,
     custom_image_id, idle_policy, on_gpu_fault, state, created_at, updated_at)
   SELECT n.id, n."projectId", n.name, n.type, n.family, n."gpuCount", l.name, n."hostId", n.image, n.source,
     n."sshPublicKeys", n."startupScript", n."startupScriptSha256", n."shutdownScript", n."osDiskId", n."osDiskSize",
     n."osDiskGib", n."interfaceId", s.network_id, s.id, n."macAddress", n."privateAddress", n."publicAddress",
     n."publicAddressId", n."isAddressStatic", n."ttlSeconds", n."onExpiry", n.labels, n.description, n."isProtected",
     n."instanceTemplateId", n."groupId", n."groupNumber", n."customImageId", n."idlePolicy", n."onGpuFault", 'STATE_CREATING',
     n.now, n.now
   FROM (SELECT *, (SELECT now FROM moment), coalesce(
     (SELECT i.source FROM images i WHERE i.name = n."imageName" AND n.location = ANY (i.locations)),
     (SELECT c.engine_source FROM captures c WHERE c.id = n."customImageId" AND c.project_id = n."projectId"
        AND c.location = n.location AND c.state = 'available')) AS source
     FROM json_to_recordset(:vms::json) AS n (id uuid, "projectId" uuid, name text, type text, family text,
     "gpuCount" integer, location text, "hostId" uuid, image text, "imageName" text, "sshPublicKeys" text[],
     "startupScript" text, "startupScriptSha256" text, "shutdownScript" text, "osDiskId" uuid, "osDiskSize" text,
     "osDiskGib" integer, "interfaceId" uuid, "subnetId" uuid, "macAddress" text, "privateAddress" inet,
     "publicAddress" inet, "publicAddressId" uuid, "isAddressStatic" boolean, "ttlSeconds" integer, "onExpiry" text, labels jsonb,
     description text, "isProtected" boolean, "instanceTemplateId" uuid, "groupId" uuid,
     "groupNumber" integer, "customImageId" uuid, "idlePolicy" jsonb, "onGpuFault" text)) n
   JOIN locations l ON l.name = n.location
   JOIN subnets s ON s.id = n."subnetId" AND s.id = ANY (ARRAY(
       SELECT (v ->> 'subnetId')::uuid FROM json_array_elements(:vms::json) v)) AND s.project_id = n."projectId" AND s.location = n.location
   WHERE n.source IS NOT NULL
   ORDER BY n."projectId", n.name FOR KEY SHARE OF s
   ON CONFLICT DO NOTHING RETURNING id)
   SELECT assert_or_abort(count(*) = :count, 'a name, address or image is no longer available') FROM made`,
)

const movesTo = (state: string, now = 'slipway_now()', health = 'v.health') =>
  `state = ${state}, updated_at = ${now}, state_since = ${now},
   started_at = CASE WHEN ${state} = 'STATE_SHUTOFF' THEN NULL
                     WHEN ${state} = 'STATE_RUNNING' AND v.state <> 'STATE_UNREACHABLE' THEN ${now}
                     ELSE v.started_at END,
   health = CASE WHEN ${state} <> 'STATE_SHUTOFF' THEN ${health} END,
   billing_paused_at = CASE WHEN ${state} <> 'STATE_SHUTOFF' THEN v.billing_paused_at END`

/** SQL for the product under which a VM is metered. */
const productOf = (vm: string) =>
  `CASE WHEN ${vm}.reservation_id IS NULL THEN ${vm}.type ELSE 'reserved-' || ${vm}.type END`

// The state table provides `from`: a transition that it does not list does not happen.
const move = statement<{ id: string }, { ids: string[]; to: string; from: string[] }>(
  'vm_move',
  `UPDATE vms v SET ${movesTo(':to')} WHERE id = ANY (:ids::uuid[]) AND state = ANY (:from) RETURNING id`,
)

// With the raised generation, the engine rejects calls that earlier operations may still make. A VM that is
// being deleted is not billed. Its meter is closed by the same statement, so that the trigger keep_vm_meter
// finds nothing to change, and the row gets one new version instead of two.
const moveToDeleting = statement<{ id: string; generation: number }, { ids: string[]; from: string[] }>(
  'vm_move_to_deleting',
  `WITH moved AS (
     UPDATE vms v SET ${movesTo("'STATE_DELETING'", 't.now')}, generation = generation + 1, metered_since = NULL,
       spent_usd_ms = v.spent_usd_ms + CASE WHEN v.metered_since IS NULL THEN 0 ELSE metered_cost(
         ${productOf('v')}, 1,
         tstzrange(v.metered_since, ${endOfMeter('v.metered_since')})) END
     FROM moment t WHERE v.id = ANY (:ids::uuid[]) AND v.state = ANY (:from) RETURNING v.id, v.generation
   ), closed AS (
     UPDATE usage_intervals i SET period = tstzrange(lower(i.period), ${endOfMeter('lower(i.period)')})
     FROM unnest(:ids::uuid[]) AS w (id) CROSS JOIN moment t WHERE i.resource_id = w.id AND upper_inf(i.period))
   SELECT id, generation FROM moved`,
)

const raise = statement<{ generation: number }, { id: string }>(
  'vm_raise_generation',
  'UPDATE vms SET generation = generation + 1 WHERE id = :id RETURNING generation',
)

// A boot clears every fault, unless the host has found that a GPU is lost.
const healthAfterBoot = `CASE WHEN v.health IS NOT NULL
  AND (SELECT true FROM gpus x WHERE x.vm_id = v.id AND x.lost_at IS NOT NULL LIMIT 1) THEN v.health END`

// Writes everything that changes when a boot ends: one new version of each VM row, its meters and its event.
// A member of a group may be metered before it runs (`group/barrier.ts`). VMs are locked in the order of
// their ids, so that two batches never deadlock. The transaction fails unless all of them move. The
// recorded time is when the statement began, even if it had to wait for a lock.
const start = statement<
  never,
  { vms: string; count: number; from: string[]; billed: string[]; eventType: string }
>(
  'vm_started',
  `WITH given AS MATERIALIZED (
     SELECT *, (SELECT now FROM moment) FROM json_to_recordset(:vms::json) AS g (id uuid, "sshDestination" text, "firewallGeneration" bigint,
       "isNew" boolean, actor text, "requestId" text, "operationId" uuid, "eventId" uuid)
   ), locked AS MATERIALIZED (
     SELECT v.id, v.state, v.metered_since FROM vms v
     WHERE v.id = ANY (ARRAY(SELECT id FROM given)) ORDER BY v.id FOR NO KEY UPDATE
   ), moved AS (
     UPDATE vms v SET ${movesTo("'STATE_RUNNING'", 'g.now', healthAfterBoot)}, ssh_host_key_sealed = NULL,
            metered_since = CASE WHEN l.state <> ALL (:billed::text[]) THEN coalesce(v.metered_since, g.now)
                                 ELSE v.metered_since END,
            ssh_destination = CASE WHEN v.public_address IS NULL THEN '' ELSE g."sshDestination" END,
            firewall_applied = greatest(v.firewall_applied, g."firewallGeneration"),
            firewall_behind_since = CASE WHEN greatest(v.firewall_applied, g."firewallGeneration") < v.firewall_wanted
                                         THEN v.firewall_behind_since END,
            expires_at = CASE WHEN v.expires_at IS NULL AND v.ttl_seconds IS NOT NULL
                              THEN g.now + v.ttl_seconds * interval '1 second' ELSE v.expires_at END
     FROM locked l JOIN given g ON g.id = l.id
     WHERE v.id = l.id AND v.id = ANY (ARRAY(SELECT id FROM given)) AND v.state = ANY (:from)
       AND v.os_disk_lost_at IS NULL
     RETURNING v.id, v.project_id, v.name, v.labels, v.location, v.type, v.reservation_id, v.os_disk_id, v.os_disk_gib,
               l.state AS state_before, l.metered_since IS NOT NULL AS was_metered, g."isNew", g.actor, g."requestId", g."operationId", g."eventId", g.now
   ), metered AS (
     INSERT INTO usage_intervals (project_id, location, resource_type, resource_id, resource_name, labels, product_name,
                                  quantity, period, reservation_id)
     SELECT m.project_id, m.location, w.type, w.id, w.name, m.labels, w.product, w.quantity, tstzrange(m.now, NULL),
            CASE w.type WHEN 'vm' THEN m.reservation_id END
     FROM moved m CROSS JOIN LATERAL (
       VALUES ('vm', m.id, m.name, ${productOf('m')}, 1,
               NOT m.was_metered AND m.state_before <> ALL (:billed::text[])),
              ('disk', m.os_disk_id, m.name || '-os', 'persistent-ssd', m.os_disk_gib - ${standardOsDiskGib}, m."isNew")
     ) AS w (type, id, name, product, quantity, is_due)
     WHERE w.is_due AND w.quantity > 0
   ), emitted AS (
     INSERT INTO events_pending (id, project_id, type, resource_type, resource_id, actor, request_id, data, created_at)
     SELECT m."eventId", m.project_id, :eventType, 'vm', m.id, m.actor, m."requestId",
            jsonb_build_object('name', m.name, 'labels', m.labels, 'operation_id', m."operationId"), m.now
     FROM moved m)
   SELECT assert_or_abort(count(*) = :count, 'a VM is no longer starting') FROM moved`,
)

const clearSshDestination = statement<never, { id: string }>(
  'vm_stopped',
  `UPDATE vms SET ssh_destination = '' WHERE id = :id`,
)

// The VM is off and its TTL has expired, so the TTL is removed and does not apply to the next start.
const clearTtl = statement<never, { id: string }>(
  'vm_spend_ttl',
  `UPDATE vms SET expires_at = NULL, ttl_seconds = NULL, expiry_warned_at = NULL
   WHERE id = :id AND (on_expiry = 'stop' OR is_protected) AND expires_at <= slipway_now()`,
)

const osDisk = statement<{ id: string }, { id: string; isLost: boolean }>(
  'vm_os_disk',
  `UPDATE vms SET os_disk_lost_at = CASE WHEN :isLost THEN slipway_now() END, updated_at = slipway_now()
   WHERE id = :id AND (os_disk_lost_at IS NOT NULL) <> :isLost RETURNING id`,
)

const setHost = statement<never, { id: string; hostId: string | null }>(
  'vm_set_host',
  'UPDATE vms SET host_id = :hostId WHERE id = :id',
)

const setType = statement<never, { id: string; type: string; gpuCount: number }>(
  'vm_set_type',
  'UPDATE vms SET type = :type, gpu_count = :gpuCount, updated_at = slipway_now() WHERE id = :id',
)

// If `ttlSeconds` is null, the VM does not expire.
const setTtl = statement<never, { id: string; ttlSeconds: number | null; onExpiry: string | null }>(
  'vm_set_ttl',
  `UPDATE vms SET ttl_seconds = :ttlSeconds::int, on_expiry = coalesce(:onExpiry, on_expiry),
          updated_at = slipway_now(), expiry_warned_at = NULL,
          expires_at = slipway_now() + :ttlSeconds::int * interval '1 second'
   WHERE id = :id`,
)

// If two workers write a key, the second one gets the key of the first.
const giveHostKey = statement<
  Pick<VmRow, 'ssh_host_key' | 'ssh_host_key_sealed'>,
  { id: string; publicKey: string; sealed: Buffer }
>(
  'vm_give_host_key',
  `UPDATE vms SET ssh_host_key = CASE ssh_host_key WHEN '' THEN :publicKey ELSE ssh_host_key END,
          ssh_host_key_sealed = CASE ssh_host_key WHEN '' THEN :sealed ELSE ssh_host_key_sealed END
   WHERE id = :id RETURNING ssh_host_key, ssh_host_key_sealed`,
)

// Locks the VMs in id order, so that two batches never deadlock.
const setReplaced = statement<never, { ids: string[] }>(
  'vm_replaced',
  `WITH locked AS MATERIALIZED (SELECT id FROM vms WHERE id = ANY (:ids::uuid[]) ORDER BY id FOR NO KEY UPDATE)
   UPDATE vms v SET last_replaced_at = slipway_now() FROM locked l WHERE v.id = l.id AND v.id = ANY (:ids::uuid[])`,
)
export const markVmsReplaced = (tx: Tx, ids: string[]) => setReplaced.run(tx, { ids })

const remove = statement<never, { ids: string[] }>(
  'vm_delete',
  'DELETE FROM vms WHERE id = ANY (:ids::uuid[])',
)

const hide = statement<never, { id: string }>(
  'vm_hide',
  'UPDATE vms SET deleted_at = slipway_now() WHERE id = :id',
)

/** The transaction is retried if a name or address was taken in the meantime, or if the catalogue changed. */
export const insertVm = (tx: Tx, vm: NewVm): Promise<void> => tx.enqueue(writeVms, vm)

const writeVms = (tx: Tx, vms: NewVm[]) => insert.run(tx, { vms: JSON.stringify(vms), count: vms.length })

/** Returns the ids of the VMs that were in one of the states `from`. */
export async function moveVms(tx: Tx, ids: string[], to: VmState, from: VmState[]): Promise<Set<string>> {
  return new Set((await move.all(tx, { ids, to, from })).map(({ id }) => id))
}

/**
 * Moves VMs to STATE_DELETING, ends their meters and raises their generations. Returns the new generations by
 * id.
 */
export async function moveVmsToDeleting(
  tx: Tx,
  ids: string[],
  from: VmState[],
): Promise<Map<string, number>> {
  return new Map((await moveToDeleting.all(tx, { ids, from })).map(({ id, generation }) => [id, generation]))
}

export const raiseVmGeneration = async (tx: Tx, id: string): Promise<number> =>
  (await raise.one(tx, { id }))!.generation

export interface StartedVm {
  id: string
  /** True if the OS disk is metered from now on. */
  isNew: boolean
  /** Used if the VM has a public address. */
  sshDestination: string
  firewallGeneration: number
  /** The actor of the event. */
  actor: string
  requestId: string
  operationId: string
}

/**
 * Moves VMs from one of the states `from` to running, opens the meters of VMs that were in none of the states
 * `billed`, and writes the event. If a VM is in another state or has lost its OS disk, the statement fails
 * (`isAssertionFailure`).
 */
export async function moveVmsToRunning(
  tx: Tx,
  vms: StartedVm[],
  states: { from: VmState[]; billed: VmState[] },
  eventType: EventType,
): Promise<void> {
  const given = vms.map((vm) => ({ ...vm, eventId: uuid() }))
  await start.run(tx, { vms: JSON.stringify(given), count: vms.length, ...states, eventType })
  tx.signal('events')
}
export const clearVmSshDestination = (tx: Tx, id: string) => clearSshDestination.run(tx, { id })
/** Null means that the host was forgotten, so no engine has the VM. */
export const setVmHost = (tx: Tx, id: string, hostId: string | null) => setHost.run(tx, { id, hostId })
/** Returns false if this was already recorded. */
export const recordOsDisk = async (tx: Tx, id: string, isLost: boolean): Promise<boolean> =>
  (await osDisk.one(tx, { id, isLost })) !== undefined
export const setVmType = (tx: Tx, id: string, type: string, gpuCount: number) =>
  setType.run(tx, { id, type, gpuCount })
/** Violates `vms_name` if the name is taken. */
export const annotateVm = annotationOf('vm')
/** Returns the key that the VM has now; undefined if the VM does not exist. */
export const giveVmHostKey = (db: Queryable, id: string, publicKey: string, sealed: Buffer) =>
  giveHostKey.one(db, { id, publicKey, sealed })
/** Removes a TTL that has expired. */
export const clearExpiredTtl = (tx: Tx, id: string) => clearTtl.run(tx, { id })
export const setVmTtl = (tx: Tx, id: string, ttlSeconds: number | null, onExpiry: string | null) =>
  setTtl.run(tx, { id, ttlSeconds, onExpiry })
export const deleteVmRows = (tx: Tx, ids: string[]) => remove.run(tx, { ids })
export const hideVm = (tx: Tx, id: string) => hide.run(tx, { id })
