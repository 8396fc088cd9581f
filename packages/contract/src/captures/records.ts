import Type, { type Static } from 'typebox'
import { imageNamePattern, imageTagPattern } from '../names.ts'
import { BlockSize, DeletionProtection, DiskSize } from '../resources.ts'
import { Description, Labels, NonEmptyTimestamp, record, Uuid } from '../schema.ts'
import { captureConsistencies, captureStates } from '../states.ts'

/** The fields that custom images and snapshots have in common. */
const captured = {
  state: Type.Enum([...captureStates]),
  size: Type.String({ ...DiskSize, description: 'The size of the disk that was copied.' }),
  stored_bytes: Type.Integer({
    format: 'int64',
    description: 'The storage that the image or snapshot uses, which is billed. 0 while it is being created.',
  }),
  consistency: Type.Enum(['', ...captureConsistencies], {
    description:
      'How the disk was copied. `off`: no VM could write to the disk. `frozen`: copied from a running VM while its file systems were frozen. `crash`: copied from a running VM without freezing; the content is like that of a disk after a power failure. Empty while the image or snapshot is being created.',
  }),
}

export const CustomImageName = Type.String({
  format: 'image-name',
  minLength: 1,
  maxLength: 127,
  pattern: imageNamePattern,
  description:
    'At most 63 lower-case letters, digits, `.`, `_` and `-`, optionally followed by a colon and a version in the same format. The default version is `latest`.',
  examples: ['trainer:v1'],
})

export const ImageTags = Type.Array(Type.String({ format: 'image-tag', pattern: imageTagPattern }), {
  maxItems: 16,
  uniqueItems: true,
  description: 'Words that describe the image. They are separate from the version in its name.',
})

export const CustomImage = record('CustomImage', {
  id: Uuid,
  name: Type.String({ examples: ['trainer:v1'] }),
  description: Description,
  tags: Type.Array(Type.String()),
  created_at: NonEmptyTimestamp,
  locations: Type.Array(Type.String(), {
    description: 'The location of the VM, disk or snapshot that the image was created from.',
  }),
  ...captured,
  source_id: Type.String({
    ...Uuid,
    description:
      'The id of the VM, disk or snapshot that the image was created from. The id stays here after that source is deleted.',
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
    description:
      'The id of the disk that the snapshot was created from. The id stays here after the disk is deleted.',
  }),
  block_size: BlockSize,
  created_at: NonEmptyTimestamp,
  updated_at: NonEmptyTimestamp,
  location: Type.String(),
  ...captured,
  labels: Labels,
  description: Description,
  deletion_protection: DeletionProtection,
})
export type Snapshot = Static<typeof Snapshot>
