import Type, { type Static } from 'typebox'
import { imageNamePattern, imageTagPattern } from '../names.ts'
import { BlockSize, DeletionProtection, DiskSize } from '../resources.ts'
import { Description, Labels, record, Timestamp, Uuid } from '../schema.ts'
import { captureConsistencies, captureStates } from '../states.ts'

/** What copies of disks have in common: custom images, from which VMs are created, and snapshots, from which disks are. */
const captured = {
  state: Type.Enum([...captureStates]),
  size: Type.String({ ...DiskSize, description: 'The size of the disk that was copied.' }),
  stored_bytes: Type.Integer({
    format: 'int64',
    description: 'How much storage it takes, which is what is billed. 0 while it is being created.',
  }),
  consistency: Type.Enum(['', ...captureConsistencies], {
    description:
      'How the copy was made: `off` while no VM could write to the disk; `frozen` from a running VM whose file systems were frozen for that moment; `crash` from a running VM that was not frozen, as a disk is after a power cut. Empty while it is being created.',
  }),
}

export const CustomImageName = Type.String({
  format: 'image-name',
  minLength: 1,
  maxLength: 127,
  pattern: imageNamePattern,
  description:
    'At most 63 lower-case letters, digits, `.`, `_` and `-`, and a tag of the same form after a colon. Without a tag, the tag is `latest`.',
  examples: ['trainer:v1'],
})

export const ImageTags = Type.Array(Type.String({ format: 'image-tag', pattern: imageTagPattern }), {
  maxItems: 16,
  uniqueItems: true,
  description: 'Words that describe the image.',
})

export const CustomImage = record('CustomImage', {
  id: Uuid,
  name: Type.String({ examples: ['trainer:v1'] }),
  description: Description,
  tags: Type.Array(Type.String()),
  created_at: Timestamp,
  locations: Type.Array(Type.String(), { description: 'The location of its source.' }),
  ...captured,
  source_id: Type.String({
    ...Uuid,
    description: 'The VM, disk or snapshot that it was created from, also after that was deleted.',
  }),
  labels: Labels,
  deletion_protection: DeletionProtection,
})
export type CustomImage = Static<typeof CustomImage>

export const Snapshot = record('Snapshot', {
  id: Uuid,
  name: Type.String({ examples: ['datasets-monday'] }),
  created_from: Type.String({
    ...Uuid,
    description: 'The disk that it was created from, also after that was deleted.',
  }),
  block_size: BlockSize,
  created_at: Timestamp,
  updated_at: Timestamp,
  location: Type.String(),
  ...captured,
  labels: Labels,
  description: Description,
  deletion_protection: DeletionProtection,
})
export type Snapshot = Static<typeof Snapshot>
