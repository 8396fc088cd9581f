import type { CustomImage, Snapshot } from '@slipway/contract'
import { inGib } from './disks.ts'
import { inSeconds } from './time.ts'

export const imageShape = (image: CustomImage) => ({
  ...image,
  size: inGib(image.size),
  created_at: inSeconds(image.created_at),
})

export const snapshotShape = (snapshot: Snapshot) => ({
  ...snapshot,
  size: inGib(snapshot.size),
  created_at: inSeconds(snapshot.created_at),
  updated_at: inSeconds(snapshot.updated_at),
})
