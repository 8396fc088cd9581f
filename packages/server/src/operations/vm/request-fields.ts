import { createHash } from 'node:crypto'
import { maxOsDiskGib, standardOsDiskGib, type VmCreate } from '@slipway/contract'
import { sshKeyLine } from '@slipway/contract/ssh-key'
import { invalidField } from '../../domain/failure.ts'
import { parseDiskSize } from '../../domain/sizes.ts'
import type { Tx } from '../../postgres/database.ts'
import { findSshKeys } from '../../store/compute/ssh-keys.ts'

/** Returns the guest's authorized keys: the key in the request, then the stored keys that it names, each once. */
export async function sshKeysOf(tx: Tx, projectId: string, body: VmCreate): Promise<string[]> {
  const sent = body.ssh_public_key === undefined ? [] : [sshKeyLine(body.ssh_public_key)]
  const ids = body.ssh_key_ids ?? []
  if (ids.length === 0) {
    if (sent.length === 0) throw invalidField('ssh_public_key', 'is required unless ssh_key_ids names a key')
    return sent
  }
  const known = new Map((await findSshKeys(tx, projectId, ids)).map(({ id, public_key }) => [id, public_key]))
  const missing = ids.findIndex((id) => !known.has(id))
  if (missing !== -1) throw invalidField(`ssh_key_ids/${missing}`, 'must be an SSH key of this project')
  return [...new Set([...sent, ...ids.map((id) => sshKeyLine(known.get(id)!))])]
}

/** The OS disk must be at least as large as the custom image. */
export function osDiskOf({ os_disk_size }: VmCreate, image?: { size: string; size_gib: number }) {
  const ofImage = image && image.size_gib > standardOsDiskGib ? image : undefined
  const size = os_disk_size ?? ofImage?.size ?? `${standardOsDiskGib}GiB`
  const gib = parseDiskSize(size)!.gib
  if (ofImage && gib < ofImage.size_gib)
    throw invalidField('os_disk_size', `must be at least ${ofImage.size}, the size of the custom image`)
  if (gib < standardOsDiskGib || gib > maxOsDiskGib)
    throw invalidField('os_disk_size', `must be from ${standardOsDiskGib}GiB to ${maxOsDiskGib / 1024}TiB`)
  return { size, gib }
}

export const scriptDigest = (script: string): string =>
  script === '' ? '' : createHash('sha256').update(script).digest('hex')
