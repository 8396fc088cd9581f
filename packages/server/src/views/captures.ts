import type { CustomImage, Snapshot } from '@slipway/contract'
import { time } from '../postgres/time.ts'
import type { CaptureRow } from '../store/captures/captures.ts'

const commonFields = (row: CaptureRow) =>
  ({
    state: row.state,
    size: row.size,
    stored_bytes: row.stored_bytes ?? 0,
    consistency: row.consistency ?? '',
  }) as const

export const customImageView = (row: CaptureRow): CustomImage => ({
  id: row.id,
  name: row.name,
  description: row.description,
  tags: row.tags,
  created_at: time(row.created_at),
  locations: [row.location],
  ...commonFields(row),
  source_id: row.source_id,
  labels: row.labels,
  deletion_protection: row.is_protected,
})

export const snapshotView = (row: CaptureRow): Snapshot => ({
  id: row.id,
  name: row.name,
  created_from: row.source_id,
  block_size: row.block_size,
  created_at: time(row.created_at),
  updated_at: time(row.updated_at),
  location: row.location,
  ...commonFields(row),
  labels: row.labels,
  description: row.description,
  deletion_protection: row.is_protected,
})

export const captureView = (row: CaptureRow): CustomImage | Snapshot =>
  row.kind === 'image' ? customImageView(row) : snapshotView(row)
