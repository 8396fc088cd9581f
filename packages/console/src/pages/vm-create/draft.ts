import {
  type Disk,
  type ExpiryAction,
  type InstanceTemplate,
  maxGroupMembers,
  maxGroupNameLength,
  type PlacementPolicyName,
  type RouteBody,
  type VmCreate,
} from '@slipway/sdk'
import { keyProblem, trimKey } from '../../features/ssh-key-field.tsx'
import { labelsText, parseLabels } from '../../lib/labels.ts'
import { nameProblem, suggestName } from '../../lib/names.ts'
import { ttlProblem, ttlSeconds } from '../../lib/ttl.ts'
import type { Problem } from './problem.tsx'
import { rememberedKey } from './remembered-key.ts'

export type GroupCreate = RouteBody<'instanceGroupCreate'>

/** The values of the form. The type and the location are in the URL. */
export interface Draft {
  name: string
  /** A count above 1 creates a group. */
  count: string
  placement: PlacementPolicyName
  /** True if group members are replaced when their host is lost. */
  replacesLost: boolean
  /** A pasted key, in addition to saved keys. */
  key: string
  /** The chosen saved keys; null until the user chooses. */
  keyIds: string[] | null
  image: string
  /** The ID of one of the project's images; empty for a catalogue image. */
  customImage: string
  startupScript: string
  shutdownScript: string
  ttlHours: string
  onExpiry: ExpiryAction
  hasPublicIp: boolean
  labels: string
  isProtected: boolean
  /** Empty for the default subnet of the location. */
  subnetId: string
  disks: { disk: Disk; mode: 'read-write' | 'read-only' }[]
}

export const countOf = ({ count }: Draft): number => Number(count)

export type InitialValues = Partial<VmCreate> & Pick<InstanceTemplate, 'placement_policy'>

/** Returns the initial values: defaults, or the values of a template, an existing VM or an earlier request. */
export const newDraft = (initial: InitialValues | null, disks: Disk[], count: string): Draft => ({
  name: initial?.name ?? suggestName(),
  count,
  placement: initial?.placement_policy ?? 'unspecified',
  replacesLost: false,
  key: initial?.ssh_public_key ?? (initial?.ssh_key_ids ? '' : rememberedKey()),
  keyIds: initial?.ssh_key_ids ?? null,
  image: initial?.image ?? '',
  customImage: initial?.custom_image ?? '',
  startupScript: initial?.startup_script ?? '',
  shutdownScript: initial?.shutdown_script ?? '',
  ttlHours: initial?.ttl_seconds ? String(initial.ttl_seconds / 3600) : '',
  onExpiry: initial?.on_expiry ?? 'stop',
  hasPublicIp: initial?.public_ip !== 'none',
  labels: labelsText(initial?.labels ?? {}),
  isProtected: initial?.deletion_protection ?? false,
  subnetId: initial?.subnet_id ?? '',
  disks: (initial?.disks ?? []).flatMap(({ disk_id, mode = 'read-write' }) => {
    const disk = disks.find(({ id }) => id === disk_id)
    return disk ? [{ disk, mode }] : []
  }),
})

type ResolvedDraft = Required<Pick<VmCreate, 'type' | 'location'>> & {
  image: string
  customImage: { id: string } | undefined
} & Pick<Draft, 'disks' | 'subnetId'> & { keyIds: string[] }

/** Returns the request that creates the VM. Empty fields are omitted, so the server uses its defaults. */
export function requestOf(
  draft: Draft,
  { type, location, image, customImage, disks, keyIds, subnetId }: ResolvedDraft,
): VmCreate {
  const { labels } = parseLabels(draft.labels)
  return {
    name: draft.name,
    type,
    location,
    ...(customImage ? { custom_image: customImage.id } : { image }),
    ...(trimKey(draft.key) && { ssh_public_key: trimKey(draft.key) }),
    ...(keyIds.length > 0 && { ssh_key_ids: keyIds }),
    ...(draft.startupScript && { startup_script: draft.startupScript }),
    ...(draft.shutdownScript && { shutdown_script: draft.shutdownScript }),
    ...(disks.length > 0 && { disks: disks.map(({ disk, mode }) => ({ disk_id: disk.id, mode })) }),
    ...(subnetId && { subnet_id: subnetId }),
    ...(!draft.hasPublicIp && { public_ip: 'none' as const }),
    ...(draft.ttlHours &&
      !ttlProblem(draft.ttlHours) && { ttl_seconds: ttlSeconds(draft.ttlHours), on_expiry: draft.onExpiry }),
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(draft.isProtected && { deletion_protection: true }),
  }
}

/** Returns the request that creates a group of these VMs. */
export function groupRequestOf(
  { name, instance_template_id, deletion_protection, ...vm }: VmCreate,
  draft: Draft,
  template: InstanceTemplate | undefined,
): GroupCreate {
  return {
    name,
    desired_count: countOf(draft),
    ...(instance_template_id && { template_id: instance_template_id }),
    // Only the group is protected, so that its members can still be replaced.
    vm: { ...vm, ...(template?.deletion_protection && { deletion_protection: false }) },
    ...(vm.labels && { labels: vm.labels }),
    ...(draft.isProtected && { deletion_protection: true }),
    placement_policy: draft.placement,
    ...(draft.replacesLost && { on_member_loss: 'replace' as const }),
  }
}

/** Returns the first problem; null if there is none. */
export function draftProblem(draft: Draft, keyIds: string[], hasSavedKeys: boolean): Problem | null {
  const name = draft.name === '' ? 'Enter a name' : nameProblem(draft.name)
  if (name) return { text: name, part: 'name' }
  const count = countProblem(draft)
  if (count) return { text: count, part: 'count' }
  if (countOf(draft) > 1 && draft.name.length > maxGroupNameLength)
    return { text: `A group name can have at most ${maxGroupNameLength} characters`, part: 'name' }
  const ttl = ttlProblem(draft.ttlHours)
  if (ttl) return { text: ttl, part: 'ttl' }
  const labels = parseLabels(draft.labels).problem
  if (labels) return { text: labels, part: 'labels' }
  // The field itself shows the details.
  if (keyProblem(draft.key)) return { text: 'Correct the SSH public key', part: 'key' }
  const hasKey = trimKey(draft.key) !== '' || keyIds.length > 0
  if (hasKey) return null
  return { text: hasSavedKeys ? 'Choose or paste an SSH public key' : 'Paste an SSH public key', part: 'key' }
}

export const countProblem = (draft: Draft): string => {
  const count = countOf(draft)
  return Number.isInteger(count) && count >= 1 && count <= maxGroupMembers
    ? ''
    : `Enter a number from 1 to ${maxGroupMembers}`
}
