import type { ExpiryAction } from '@slipway/contract/states'
import type { Disk, VmCreate } from '@slipway/sdk'
import { keyProblem, trimKey } from '../../features/ssh-key-field.tsx'
import { parseLabels } from '../../lib/labels.ts'
import { nameProblem, suggestName } from '../../lib/names.ts'
import type { Problem } from './problem.tsx'
import { rememberedKey } from './remembered-key.ts'

/** The values of the form. The type and the location are in the URL. */
export interface Draft {
  name: string
  /** A pasted key, in addition to saved keys. */
  key: string
  /** The chosen saved keys; null until the user chooses. */
  keyIds: string[] | null
  image: string
  startupScript: string
  shutdownScript: string
  ttlHours: string
  onExpiry: ExpiryAction
  hasPublicIp: boolean
  labels: string
  isProtected: boolean
  disks: { disk: Disk; mode: 'read-write' | 'read-only' }[]
}

export const newDraft = (): Draft => ({
  name: suggestName(),
  key: rememberedKey(),
  keyIds: null,
  image: '',
  startupScript: '',
  shutdownScript: '',
  ttlHours: '',
  onExpiry: 'stop',
  hasPublicIp: true,
  labels: '',
  isProtected: false,
  disks: [],
})

type Settled = Pick<VmCreate, 'type' | 'location' | 'image'> & Pick<Draft, 'disks'> & { keyIds: string[] }

/** Returns the request that creates the VM. Empty fields are omitted, so the service uses its defaults. */
export function requestOf(draft: Draft, { disks, keyIds, ...place }: Settled): VmCreate {
  const { labels } = parseLabels(draft.labels)
  return {
    name: draft.name,
    ...place,
    ...(trimKey(draft.key) && { ssh_public_key: trimKey(draft.key) }),
    ...(keyIds.length > 0 && { ssh_key_ids: keyIds }),
    ...(draft.startupScript && { startup_script: draft.startupScript }),
    ...(draft.shutdownScript && { shutdown_script: draft.shutdownScript }),
    ...(disks.length > 0 && { disks: disks.map(({ disk, mode }) => ({ disk_id: disk.id, mode })) }),
    ...(!draft.hasPublicIp && { public_ip: 'none' as const }),
    ...(draft.ttlHours && { ttl_seconds: Number(draft.ttlHours) * 3600, on_expiry: draft.onExpiry }),
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(draft.isProtected && { deletion_protection: true }),
  }
}

/** Returns the first problem; null if there is none. */
export function draftProblem(draft: Draft, keyIds: string[]): Problem | null {
  const name = draft.name === '' ? 'Enter a name' : nameProblem(draft.name)
  if (name) return { words: name, part: 'name' }
  const labels = parseLabels(draft.labels).problem
  if (labels) return { words: labels, part: 'labels' }
  // The field itself shows the details.
  if (keyProblem(draft.key)) return { words: 'Correct the SSH public key', part: 'key' }
  const hasKey = trimKey(draft.key) !== '' || keyIds.length > 0
  return hasKey ? null : { words: 'Choose or paste an SSH public key', part: 'key' }
}
