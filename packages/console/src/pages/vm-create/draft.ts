import type { ExpiryAction } from '@slipway/contract/states'
import type { Disk, VmCreate } from '@slipway/sdk'
import { nameProblem, suggestName } from '../../lib/names.ts'
import { keyOf, rememberedKey } from './remembered-key.ts'

/** The draft is what has been filled in so far; type and location are in the address of the page. */
export interface Draft {
  name: string
  key: string
  image: string
  startupScript: string
  shutdownScript: string
  ttlHours: string
  onExpiry: ExpiryAction
  hasPublicIp: boolean
  disks: { disk: Disk; mode: 'read-write' | 'read-only' }[]
}

export const newDraft = (): Draft => ({
  name: suggestName(),
  key: rememberedKey(),
  image: '',
  startupScript: '',
  shutdownScript: '',
  ttlHours: '',
  onExpiry: 'stop',
  hasPublicIp: true,
  disks: [],
})

/** Returns the request that makes this VM; what was left empty is left to the service. */
export const requestOf = (
  draft: Draft,
  { disks, ...place }: Pick<VmCreate, 'type' | 'location' | 'image'> & Pick<Draft, 'disks'>,
): VmCreate => ({
  name: draft.name,
  ...place,
  ssh_public_key: keyOf(draft.key),
  ...(draft.startupScript && { startup_script: draft.startupScript }),
  ...(draft.shutdownScript && { shutdown_script: draft.shutdownScript }),
  ...(disks.length > 0 && { disks: disks.map(({ disk, mode }) => ({ disk_id: disk.id, mode })) }),
  ...(!draft.hasPublicIp && { public_ip: 'none' as const }),
  ...(draft.ttlHours && { ttl_seconds: Number(draft.ttlHours) * 3600, on_expiry: draft.onExpiry }),
})

/** Returns what must be mended before the request can be sent; empty when nothing is. */
export const draftProblem = (draft: Draft): string =>
  (draft.name === '' ? 'Give it a name' : nameProblem(draft.name)) ||
  (keyOf(draft.key) === '' ? 'Paste an SSH public key' : '')
