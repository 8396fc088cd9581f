import type {
  AnnotationUpdate,
  GroupState,
  LabelSelector,
  Labels,
  MemberLossPolicy,
  PlacementPolicyName,
  VmState,
} from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { fitsLabels, type LabelParams, labelParams } from '../../postgres/labels.ts'
import { filteredStatement, isBefore, type PageParams, statement } from '../../postgres/statement.ts'
import type { TemplateBody } from './instance-templates.ts'

export interface MemberRow {
  id: string
  number: number
  name: string
  state: VmState
  private_address: string
  host_id: string | null
  is_protected: boolean
  ssh_host_key: string
  booted_at: string | null
  /** How long the member has been unreachable, in seconds; null if it is reachable. */
  unreachable_s: number | null
  booted_ssh_destination: string
  firewall_applied: number
}

export interface GroupRow {
  id: string
  project_id: string
  name: string
  labels: Labels
  description: string
  is_protected: boolean
  template_id: string | null
  vm: Omit<TemplateBody, 'placement_policy'>
  location: string
  desired_count: number
  placement_policy: PlacementPolicyName
  on_member_loss: MemberLossPolicy
  state: GroupState
  generation: number
  created_at: Date
  updated_at: Date
  /** In the order of their numbers, without those that were deleted while their host was down. */
  members: MemberRow[]
}

const selectGroup = `SELECT g.*, coalesce((
     SELECT json_agg(json_build_object('id', v.id, 'number', v.group_number, 'name', v.name, 'state', v.state,
              'private_address', host(v.private_address), 'host_id', v.host_id, 'is_protected', v.is_protected,
              'ssh_host_key', v.ssh_host_key, 'booted_at', v.booted_at,
              'unreachable_s', CASE v.state WHEN 'STATE_UNREACHABLE'
                               THEN extract(epoch FROM slipway_now() - v.state_since)::int END,
              'booted_ssh_destination', v.booted_ssh_destination, 'firewall_applied', v.firewall_applied)
            ORDER BY v.group_number)
     FROM vms v WHERE v.group_id = g.id AND v.deleted_at IS NULL), '[]') AS members
   FROM instance_groups g`

const byId = statement<GroupRow, { projectId: string; id: string }>(
  'instance_group_by_id',
  `${selectGroup} WHERE g.project_id = :projectId AND g.id = :id`,
)

const list = filteredStatement<
  GroupRow,
  PageParams & { projectId: string; names: string[] | null } & LabelParams
>(
  'instance_group_list',
  (given) => `${selectGroup}
   WHERE g.project_id = :projectId AND ${isBefore('g.id')} AND ${fitsLabels('g.labels')} ${given}
   ORDER BY g.id DESC LIMIT :limit`,
  { names: 'g.name = ANY (:names)' },
)

// Every transaction locks VMs before their group, and VMs in the order of their ids.
const lockMembers = statement<never, { id: string }>(
  'instance_group_lock_members',
  'SELECT id FROM vms WHERE group_id = :id AND deleted_at IS NULL ORDER BY id FOR NO KEY UPDATE',
)
const lock = statement<never, { projectId: string; id: string }>(
  'instance_group_lock',
  'SELECT id FROM instance_groups WHERE project_id = :projectId AND id = :id FOR UPDATE',
)

const insert = statement<never, NewGroup>(
  'instance_group_insert',
  `INSERT INTO instance_groups (id, project_id, name, labels, description, is_protected, template_id, vm, location,
                                desired_count, placement_policy, on_member_loss, state)
   VALUES (:id, :projectId, :name, :labels, :description, :isProtected, :templateId, :vm::json, :location,
           :desiredCount, :placementPolicy, :onMemberLoss, 'UPDATING')`,
)

const change = statement<never, { id: string } & GroupChange>(
  'instance_group_change',
  `UPDATE instance_groups SET state = coalesce(:state, state), desired_count = coalesce(:desiredCount, desired_count),
          generation = generation + CASE WHEN :raisesGeneration::boolean THEN 1 ELSE 0 END, template_id = coalesce(:templateId, template_id),
          labels = coalesce(:labels, labels), description = coalesce(:description, description),
          is_protected = coalesce(:isProtected, is_protected), updated_at = slipway_now()
   WHERE id = :id`,
)

// Reduces the desired size of groups, because members are being deleted.
const shrink = statement<never, { ids: string[]; counts: number[] }>(
  'instance_group_lower',
  `UPDATE instance_groups g SET desired_count = greatest(0, g.desired_count - w.count), generation = g.generation + 1,
          updated_at = slipway_now()
   FROM unnest(:ids::uuid[], :counts::int[]) AS w (id, count) WHERE g.id = w.id`,
)

// Members that were deleted while their host was down still refer to the group, so clear the reference before
// deleting the group.
const detachMembers = statement<never, { id: string }>(
  'instance_group_leave',
  'UPDATE vms SET group_id = NULL, group_number = NULL WHERE group_id = :id',
)
const remove = statement<never, { id: string }>(
  'instance_group_delete',
  'DELETE FROM instance_groups WHERE id = :id',
)

/** The states of a member that make its group unhealthy. */
export const unhealthyStates: VmState[] = ['STATE_CRASHED', 'STATE_UNREACHABLE']

// Moves a group between healthy and unhealthy, depending on its members. Does nothing while an operation
// changes the group.
const updateHealth = statement<GroupRow, { id: string; unhealthy: string[] }>(
  'instance_group_judge',
  `WITH judged AS (
     SELECT g.id, CASE WHEN count(v.id) FILTER (WHERE v.state <> 'STATE_DELETING') <> g.desired_count
                         OR bool_or(v.state = ANY (:unhealthy::text[])) THEN 'UNHEALTHY' ELSE 'HEALTHY' END AS state
     FROM instance_groups g LEFT JOIN vms v ON v.group_id = g.id AND v.deleted_at IS NULL
     WHERE g.id = :id GROUP BY g.id)
   UPDATE instance_groups g SET state = j.state, updated_at = slipway_now() FROM judged j
   WHERE g.id = j.id AND g.state IN ('HEALTHY', 'UNHEALTHY') AND g.state <> j.state RETURNING g.*`,
)

const arrive = statement<{ id: string }, { id: string; sshDestination: string; firewallGeneration: number }>(
  'instance_group_arrive',
  `UPDATE vms SET booted_at = slipway_now(), booted_ssh_destination = :sshDestination,
          firewall_applied = greatest(firewall_applied, :firewallGeneration::bigint)
   WHERE id = :id AND booted_at IS NULL AND state = 'STATE_CREATING' RETURNING id`,
)

export interface BootFailure {
  number: number
  host_id: string | null
  code: string
  message: string
}

const insertBootFailure = statement<
  never,
  { groupId: string } & Omit<BootFailure, 'host_id'> & { hostId: string | null }
>(
  'instance_group_boot_failed',
  `INSERT INTO group_boot_failures (group_id, number, host_id, code, message)
   SELECT g.id, :number, :hostId, :code, :message FROM instance_groups g WHERE g.id = :groupId`,
)

export const listBootFailures = statement<BootFailure, { groupId: string }>(
  'instance_group_boot_failures',
  'SELECT number, host_id, code, message FROM group_boot_failures WHERE group_id = :groupId ORDER BY failed_at',
).allBy('groupId')

export const clearBootFailures = statement<never, { groupId: string }, Tx>(
  'instance_group_forget_failures',
  'DELETE FROM group_boot_failures WHERE group_id = :groupId',
).runBy('groupId')

/** Counts the group operations of an organization that failed in the last 24 hours, at most 10 for each project. */
const failures = statement<{ count: number }, { organizationId: string }>(
  'instance_group_failures',
  `SELECT count(*) AS count FROM projects p CROSS JOIN LATERAL (
     SELECT FROM operations o WHERE o.project_id = p.id AND o.state = 'FAILED' AND o.resource_type = 'instance_group'
       AND o.completed_at > slipway_now() - interval '1 day' LIMIT 10) o
   WHERE p.organization_id = :organizationId`,
)

/**
 * Groups to repair: an unprotected member has been unreachable for `unreachableS` seconds, or members have
 * been missing for that long.
 */
const toRepair = `SELECT g.id, g.project_id FROM instance_groups g
   WHERE g.on_member_loss = 'replace' AND g.state = 'UNHEALTHY'
     AND (EXISTS (SELECT FROM vms v WHERE v.group_id = g.id AND v.deleted_at IS NULL AND NOT v.is_protected
                    AND v.state = 'STATE_UNREACHABLE'
                    AND v.state_since <= slipway_now() - :unreachableS::int * interval '1 second')
          OR g.updated_at <= slipway_now() - :unreachableS::int * interval '1 second'
             AND (SELECT count(*) FROM vms v WHERE v.group_id = g.id AND v.deleted_at IS NULL) < g.desired_count)
   ORDER BY g.updated_at`

export const listGroupsToRepair = statement<
  { id: string; project_id: string },
  { unreachableS: number; limit: number }
>('instance_group_to_repair', `${toRepair} LIMIT :limit`).allBy('unreachableS', 'limit')

/** Lists the disks that were created with members of the group, including former members. */
export const disksOfGroup = statement<{ id: string; name: string }, { groupId: string }, Tx>(
  'instance_group_disks',
  'SELECT id, name FROM disks WHERE group_id = :groupId ORDER BY id',
).allBy('groupId')

export const keepDisksOfGroup = statement<never, { groupId: string }, Tx>(
  'instance_group_keep_disks',
  'UPDATE disks SET group_id = NULL WHERE group_id = :groupId',
).runBy('groupId')

const admissionLock = statement<never, { key: string }>(
  'instance_group_gang_lock',
  'SELECT pg_advisory_xact_lock(hashtextextended(:key, 7102031))',
)

/**
 * Admits groups of a location and family one after another, so that two groups never wait for each other's
 * hosts.
 */
export const lockGroupAdmission = (tx: Tx, location: string, family: string) =>
  admissionLock.run(tx, { key: `${location} ${family}` })

export interface NewGroup {
  id: string
  projectId: string
  name: string
  labels: Labels
  description: string
  isProtected: boolean
  templateId: string | null
  /** JSON text, which keeps the order of the keys. */
  vm: string
  location: string
  desiredCount: number
  placementPolicy: PlacementPolicyName
  onMemberLoss: MemberLossPolicy
}

/** Null leaves a column unchanged. */
interface GroupChange {
  state: GroupState | null
  desiredCount: number | null
  raisesGeneration: boolean
  templateId: string | null
  labels: Labels | null
  description: string | null
  isProtected: boolean | null
}

const unchanged: GroupChange = {
  state: null,
  desiredCount: null,
  raisesGeneration: false,
  templateId: null,
  labels: null,
  description: null,
  isProtected: null,
}

export const findGroup = (db: Queryable, projectId: string, id: string) => byId.one(db, { projectId, id })
export const listGroups = (
  db: Queryable,
  {
    labels,
    ...filter
  }: PageParams & { projectId: string; names: string[] | null; labels: LabelSelector | null },
) => list.all(db, { ...filter, ...labelParams(labels) })

/** Locks the members of the group, then the group, and returns its current row. */
export async function lockGroup(tx: Tx, projectId: string, id: string): Promise<GroupRow | undefined> {
  await lockMembers.run(tx, { id })
  await lock.run(tx, { projectId, id })
  return findGroup(tx, projectId, id)
}

/** Violates `instance_groups_project_id_name_key` if the name is taken. */
export const insertGroup = (tx: Tx, group: NewGroup) => insert.run(tx, group)
export const changeGroup = (tx: Tx, id: string, changed: Partial<GroupChange>) =>
  change.run(tx, { id, ...unchanged, ...changed })
export const annotateGroup = (tx: Tx, id: string, request: AnnotationUpdate) =>
  changeGroup(tx, id, {
    labels: request.labels ?? null,
    description: request.description ?? null,
    isProtected: request.deletion_protection ?? null,
  })

/** Reduces the desired size of a group by one, because a member is being deleted. */
export const shrinkGroup = (tx: Tx, id: string): Promise<void> => tx.enqueue(writeShrink, id)

async function writeShrink(tx: Tx, ids: string[]): Promise<void> {
  const counts = new Map<string, number>()
  for (const id of ids.toSorted()) counts.set(id, (counts.get(id) ?? 0) + 1)
  await shrink.run(tx, { ids: [...counts.keys()], counts: [...counts.values()] })
}

export async function deleteGroup(tx: Tx, id: string): Promise<void> {
  await detachMembers.run(tx, { id })
  await keepDisksOfGroup(tx, id)
  await remove.run(tx, { id })
}

/** Sets the group to healthy or unhealthy, and returns it if that changed its state. */
export const updateGroupHealth = (tx: Tx, id: string) =>
  updateHealth.one(tx, { id, unhealthy: unhealthyStates })

/**
 * Records that a new member responds. Returns false if that is already recorded, or if the member is no longer being
 * created.
 */
export const recordArrival = async (
  tx: Tx,
  vm: { id: string; sshDestination: string; firewallGeneration: number },
): Promise<boolean> => (await arrive.one(tx, vm)) !== undefined

export const recordBootFailure = (
  tx: Tx,
  groupId: string,
  { host_id, ...failure }: BootFailure,
): Promise<number> => insertBootFailure.run(tx, { groupId, hostId: host_id, ...failure })

export const countFailedGroups = async (tx: Tx, organizationId: string): Promise<number> =>
  (await failures.one(tx, { organizationId }))!.count
